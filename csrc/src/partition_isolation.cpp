#include "ov_autoplace/partition_isolation.hpp"

#include <algorithm>
#include <numeric>

namespace ov_autoplace {
namespace {

constexpr std::int32_t none = -1;

void set_bit(std::vector<std::uint64_t>& bits, std::int32_t i, bool value) {
    const std::uint64_t mask = std::uint64_t{1} << (i % 64);
    bits[i / 64] = value ? bits[i / 64] | mask : bits[i / 64] & ~mask;
}

std::int32_t first_bit(const std::vector<std::uint64_t>& bits) {
    for (std::size_t w = 0; w < bits.size(); ++w) {
        if (bits[w] == 0) continue;
        std::int32_t i = 0;
        while (!(bits[w] >> i & 1)) ++i;
        return static_cast<std::int32_t>(w * 64) + i;
    }
    return none;
}

}  // namespace

Isolation::Isolation(const PartitionGraph& graph)
    : m_graph(graph),
      m_outputs{graph.output_offsets.data(), graph.output_readers.data()},
      m_inputs{graph.input_offsets.data(), graph.input_sources.data()},
      m_part(graph.size()),
      m_position(graph.size()),
      m_begin(graph.size()),
      m_end(graph.size()),
      m_circle(graph.size()),
      m_slot(graph.size()),
      m_class(graph.size()),
      m_mark(graph.size()),
      m_order(graph.size()),
      m_low(graph.size()),
      m_next_member(graph.size()),
      m_next_edge(graph.size()) {
    m_main.found_mark.resize(graph.size());
    m_other.found_mark.resize(graph.size());
}

void Isolation::run(std::vector<std::int32_t>& root, const std::vector<std::int32_t>& circle,
                    std::vector<std::uint8_t>& boundary) {
    m_boundary = &boundary;
    collect_parts(root, circle);
    rank_candidates(boundary);
    for (std::int32_t node = take_best(); node != none; node = take_best()) {
        m_seeds.assign(1, node);
        for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
            if (!boundary[e]) m_seeds.push_back(m_graph.input_sources[e]);
            boundary[e] = 1;
        }
        // A new seed is compared with one of those before it in its part, for they hang together.
        for (std::size_t i = 1; i < m_seeds.size(); ++i) {
            std::size_t j = 0;
            while (m_part[m_seeds[j]] != m_part[m_seeds[i]]) ++j;
            if (j < i) separate(m_seeds[j], m_seeds[i]);
        }
        m_pending.clear();
        for (const std::int32_t seed : m_seeds) {
            if (m_part[seed] != m_part[node]) m_pending.push_back(m_part[seed]);
        }
        if (!m_pending.empty()) renew_circles(m_part[node]);
    }
    std::vector<std::int32_t>& name = m_low;
    std::fill_n(name.begin(), m_parts, none);
    for (const std::int32_t node : m_nodes) {
        std::int32_t& smallest = name[m_part[node]];
        if (smallest == none) smallest = node;
        root[node] = smallest;
    }
}

void Isolation::collect_parts(const std::vector<std::int32_t>& root,
                              const std::vector<std::int32_t>& circle) {
    m_nodes.clear();
    m_parts = m_next_circle = 0;
    for (std::int32_t node = 0; node < m_graph.size(); ++node) {
        const std::int32_t c = circle[root[node]];
        if (c < 0) {
            m_part[node] = none;
            continue;
        }
        if (root[node] == node) {
            m_end[m_parts] = 0;
            m_circle[m_parts] = c;
            m_next_circle = std::max(m_next_circle, c + 1);
            m_part[node] = m_parts++;
        } else {
            m_part[node] = m_part[root[node]];
        }
        ++m_end[m_part[node]];
        m_nodes.push_back(node);
    }
    std::int32_t begin = 0;
    for (std::int32_t part = 0; part < m_parts; ++part) {
        m_begin[part] = begin;
        begin += m_end[part];
        m_end[part] = m_begin[part];
    }
    m_members.resize(m_nodes.size());
    for (const std::int32_t node : m_nodes) {
        m_position[node] = m_end[m_part[node]]++;
        m_members[m_position[node]] = node;
    }
    std::fill(m_mark.begin(), m_mark.end(), 0);
    for (Front* front : {&m_main, &m_other}) std::fill(front->found_mark.begin(), front->found_mark.end(), 0);
    std::fill(m_order.begin(), m_order.end(), none);
    m_last_mark = m_visited = 0;
}

// Sorts by what does not change: no source that others read too, a leaf as source, a place in a row of nodes,
// the number of inputs to cut, and the node.
void Isolation::rank_candidates(const std::vector<std::uint8_t>& boundary) {
    std::int32_t most_inputs = 0;
    for (const std::int32_t node : m_nodes) {
        std::int32_t inner_inputs = 0;
        bool shares_source = false, has_leaf_input = false;
        for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
            if (boundary[e]) continue;
            const std::int32_t source = m_graph.input_sources[e];
            ++inner_inputs;
            shares_source = shares_source || m_graph.readers[source] > 1;
            has_leaf_input = has_leaf_input || m_graph.is_leaf[source];
        }
        most_inputs = std::max(most_inputs, inner_inputs);
        const bool is_linear = inner_inputs == 1 && m_graph.readers[node] <= 1;
        m_class[node] = inner_inputs << 3 | !shares_source << 2 | has_leaf_input << 1 | int{is_linear};
    }
    const auto class_of = [&](std::int32_t node) {
        return (m_class[node] & 7) * (most_inputs + 1) + (m_class[node] >> 3);
    };
    m_class_end.assign(8 * (most_inputs + 1) + 1, 0);
    std::int32_t candidates = 0;
    for (const std::int32_t node : m_nodes) {
        m_slot[node] = none;
        if (m_class[node] >> 3 == 0) continue;
        ++candidates;
        ++m_class_end[class_of(node) + 1];
    }
    std::partial_sum(m_class_end.begin(), m_class_end.end(), m_class_end.begin());
    m_candidates.resize(candidates);
    m_open.assign((candidates + 63) / 64, 0);
    m_entered.assign(m_open.size(), 0);
    for (const std::int32_t node : m_nodes) {
        if (m_class[node] >> 3 == 0) continue;
        m_slot[node] = m_class_end[class_of(node)]++;
        m_candidates[m_slot[node]] = node;
        refresh(node);
    }
}

std::int32_t Isolation::take_best() {
    std::int32_t slot = first_bit(m_entered);
    if (slot == none) slot = first_bit(m_open);
    if (slot == none) return none;
    const std::int32_t node = m_candidates[slot];
    forget(node);
    return node;
}

void Isolation::forget(std::int32_t node) {
    if (m_slot[node] == none) return;
    set_bit(m_open, m_slot[node], false);
    set_bit(m_entered, m_slot[node], false);
    m_slot[node] = none;
}

void Isolation::refresh(std::int32_t node) {
    if (m_slot[node] == none) return;
    set_bit(m_open, m_slot[node], true);
    set_bit(m_entered, m_slot[node], enters_from_circle(node));
}

void Isolation::refresh_readers(std::int32_t node) {
    for (std::int32_t k = m_graph.output_offsets[node]; k < m_graph.output_offsets[node + 1]; ++k) {
        if (m_part[m_graph.output_readers[k]] != none) refresh(m_graph.output_readers[k]);
    }
}

bool Isolation::enters_from_circle(std::int32_t node) const {
    for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
        const std::int32_t part = m_part[m_graph.input_sources[e]];
        if (part != none && part != m_part[node] && m_circle[part] >= 0) return true;
    }
    return false;
}

// Searches from two nodes of a part in turns: where the searches do not meet, the one that ends first has
// found a part of its own.
void Isolation::separate(std::int32_t a, std::int32_t b) {
    if (a == b) return;
    const std::int32_t marks[2] = {m_last_mark + 1, m_last_mark + 2};
    m_last_mark += 2;
    m_sides[0].assign(1, a);
    m_sides[1].assign(1, b);
    m_mark[a] = marks[0];
    m_mark[b] = marks[1];
    std::size_t next = 0;
    for (int side = 0;; side ^= 1, next += side == 0) {
        std::vector<std::int32_t>& found = m_sides[side];
        if (next == found.size()) {
            move_out(found);
            return;
        }
        const std::int32_t node = found[next];
        const auto meets = [&](std::int32_t other) {
            if (m_mark[other] == marks[side ^ 1]) return true;
            if (m_mark[other] != marks[side]) {
                m_mark[other] = marks[side];
                found.push_back(other);
            }
            return false;
        };
        for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
            if (!(*m_boundary)[e] && meets(m_graph.input_sources[e])) return;
        }
        for (std::int32_t k = m_graph.output_offsets[node]; k < m_graph.output_offsets[node + 1]; ++k) {
            if (!(*m_boundary)[m_graph.output_edges[k]] && meets(m_graph.output_readers[k])) return;
        }
    }
}

// Makes a part of some nodes of another part.
void Isolation::move_out(const std::vector<std::int32_t>& nodes) {
    const std::int32_t from = m_part[nodes[0]], to = m_parts++;
    m_circle[to] = m_circle[from];
    m_end[to] = m_end[from];
    for (const std::int32_t node : nodes) {
        const std::int32_t last = m_members[--m_end[from]];
        std::swap(m_members[m_position[node]], m_members[m_position[last]]);
        std::swap(m_position[node], m_position[last]);
        m_part[node] = to;
    }
    m_begin[to] = m_end[from];
    for (const std::int32_t node : nodes) {
        refresh(node);
        refresh_readers(node);
    }
}

// Finds what is left of a circle after one of its parts fell apart. `pivot` is the piece with the node that
// was cut off, m_pending has the other pieces, each of which has an edge to the pivot.
//
// Every part of the circle still leads to the pivot, directly or through another piece. So the circle holds
// if the pivot leads to all pieces. Of a piece that it does not lead to, everything above that piece leaves
// the circle, and what is read from there must be asked the same question. Where the pivot's side ends first,
// that side leaves, and the same is done upside down from the piece for what led to the pivot's side.
void Isolation::renew_circles(std::int32_t pivot) {
    const std::int32_t circle = m_circle[pivot];
    const Edges *ahead = &m_outputs, *back = &m_inputs;
    start(m_main, pivot);
    bool shrunk = false;
    while (!m_pending.empty()) {
        const std::int32_t target = m_pending.back();
        m_pending.pop_back();
        if (m_circle[target] != circle || m_main.found(target)) continue;
        start(m_other, target);
        for (bool met = false; !met;) {
            if (!advance(m_other, m_main, *back, met)) {
                add_pending(m_other, circle, *ahead);
                leave(m_other);
                shrunk = true;
                break;
            }
            if (met || advance(m_main, m_other, *ahead, met)) continue;
            // All that the pivot leads to leads back to it.
            const auto is_other = [&](std::int32_t part) {
                return part != target && m_circle[part] == circle && !m_main.found(part);
            };
            if (std::any_of(m_pending.begin(), m_pending.end(), is_other)) {
                leave(m_main);
                m_pending.push_back(target);
                find_circles(m_pending, circle, *ahead);
                return;
            }
            m_pending.clear();
            add_pending(m_main, circle, *back);
            leave(m_main);
            pivot = target;
            std::swap(m_main, m_other);
            std::swap(ahead, back);
            shrunk = true;
            break;
        }
    }
    for (bool met = false; shrunk && m_main.parts.size() == 1;) {
        if (advance(m_main, m_other, *ahead, met)) continue;
        retire(pivot);
        return;
    }
}

void Isolation::start(Front& front, std::int32_t part) {
    front.parts.assign(1, part);
    front.part = 0;
    front.member = m_begin[part];
    front.mark = front.found_mark[part] = ++m_last_mark;
}

// Follows the edges of one more node; false when there is none.
bool Isolation::advance(Front& front, const Front& other, const Edges& edges, bool& met) const {
    while (front.member == m_end[front.parts[front.part]]) {
        if (front.part + 1 == front.parts.size()) return false;
        front.member = m_begin[front.parts[++front.part]];
    }
    const std::int32_t node = m_members[front.member++], circle = m_circle[m_part[node]];
    for (std::int32_t k = edges.offsets[node]; k < edges.offsets[node + 1]; ++k) {
        const std::int32_t part = m_part[edges.ends[k]];
        if (part == none || m_circle[part] != circle || front.found(part)) continue;
        front.found_mark[part] = front.mark;
        front.parts.push_back(part);
        met |= other.found(part);
    }
    return true;
}

// Adds to m_pending what stays in the circle at the other end of edges of the parts that leave it.
void Isolation::add_pending(const Front& left, std::int32_t circle, const Edges& edges) {
    for (const std::int32_t part : left.parts) {
        for (std::int32_t i = m_begin[part]; i < m_end[part]; ++i) {
            const std::int32_t node = m_members[i];
            for (std::int32_t k = edges.offsets[node]; k < edges.offsets[node + 1]; ++k) {
                const std::int32_t end = m_part[edges.ends[k]];
                if (end != none && m_circle[end] == circle && !left.found(end)) m_pending.push_back(end);
            }
        }
    }
}

// Takes what a search found out of its circle; circles may remain in there.
void Isolation::leave(const Front& front) {
    if (front.parts.size() == 1) {
        retire(front.parts[0]);
        return;
    }
    const std::int32_t circle = m_next_circle++;
    for (const std::int32_t part : front.parts) m_circle[part] = circle;
    find_circles(front.parts, circle, m_outputs);
}

// Tarjan's algorithm over the parts of a former circle that hang on `starts`.
void Isolation::find_circles(const std::vector<std::int32_t>& starts, std::int32_t circle,
                             const Edges& edges) {
    const std::int32_t first = m_visited;
    const auto enter = [&](std::int32_t part) {
        m_order[part] = m_low[part] = m_visited++;
        m_next_member[part] = m_begin[part];
        m_next_edge[part] = edges.offsets[m_members[m_begin[part]]];
        m_path.push_back(part);
        m_stack.push_back(part);
    };
    for (const std::int32_t start : starts) {
        if (m_circle[start] != circle) continue;
        enter(start);
        while (!m_path.empty()) {
            const std::int32_t part = m_path.back();
            std::int32_t node = m_members[m_next_member[part]];
            bool entered = false;
            while (!entered) {
                if (m_next_edge[part] == edges.offsets[node + 1]) {
                    if (++m_next_member[part] == m_end[part]) break;
                    node = m_members[m_next_member[part]];
                    m_next_edge[part] = edges.offsets[node];
                    continue;
                }
                const std::int32_t next = m_part[edges.ends[m_next_edge[part]++]];
                if (next == none || m_circle[next] != circle) continue;
                if (m_order[next] < first) {
                    enter(next);
                    entered = true;
                } else {
                    m_low[part] = std::min(m_low[part], m_order[next]);
                }
            }
            if (entered) continue;
            m_path.pop_back();
            if (!m_path.empty()) m_low[m_path.back()] = std::min(m_low[m_path.back()], m_low[part]);
            if (m_low[part] == m_order[part]) close_component(part);
        }
    }
}

// The parts above `part` on the stack wait for each other.
void Isolation::close_component(std::int32_t part) {
    if (m_stack.back() == part) {
        m_stack.pop_back();
        retire(part);
        return;
    }
    const std::int32_t circle = m_next_circle++;
    std::int32_t member = none;
    do {
        member = m_stack.back();
        m_stack.pop_back();
        m_circle[member] = circle;
    } while (member != part);
}

// A part that waits for nobody who waits for it.
void Isolation::retire(std::int32_t part) {
    m_circle[part] = none;
    for (std::int32_t i = m_begin[part]; i < m_end[part]; ++i) {
        forget(m_members[i]);
        refresh_readers(m_members[i]);
    }
}

}  // namespace ov_autoplace
