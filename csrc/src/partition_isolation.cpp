#include "ov_autoplace/partition_isolation.hpp"

#include <algorithm>
#include <numeric>

namespace ov_autoplace {
namespace {

constexpr std::int32_t none = -1;

}  // namespace

Isolation::Isolation(const PartitionGraph& graph, std::vector<std::uint8_t>& boundary,
                     SpanningEdges& spanning)
    : m_graph(graph),
      m_outputs{graph.output_offsets.data(), graph.output_readers.data()},
      m_inputs{graph.input_offsets.data(), graph.input_sources.data()},
      m_boundary(boundary),
      m_spanning(spanning),
      m_part(graph.size()),
      m_circle(graph.size()),
      m_first(graph.size()),
      m_next(graph.size()),
      m_previous(graph.size()),
      m_active(graph.size()),
      m_slot(graph.size()),
      m_entries(graph.size()),
      m_class(graph.size()),
      m_order(graph.size()),
      m_low(graph.size()),
      m_at_node(graph.size()),
      m_at_edge(graph.size()) {
    m_forward.found_mark.resize(graph.size());
    m_backward.found_mark.resize(graph.size());
}

void Isolation::start(const std::vector<std::int32_t>& root, const std::vector<std::int32_t>& circle) {
    collect_parts(root, circle);
    rank_candidates();
    span_parts();
    take_work();
}

bool Isolation::cut_next() {
    const std::int32_t node = take_best();
    if (node != none) cut_off(node);
    return node != none;
}

void Isolation::name_parts(std::vector<std::int32_t>& root) {
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
    m_circle_parts.clear();
    m_parts = 0;
    for (std::int32_t node = 0; node < m_graph.size(); ++node) {
        const std::int32_t c = circle[root[node]];
        m_part[node] = none;
        if (c < 0) continue;
        if (root[node] == node) {
            m_first[m_parts] = none;
            m_circle[m_parts] = c;
            if (m_circle_parts.size() <= static_cast<std::size_t>(c)) m_circle_parts.resize(c + 1);
            ++m_circle_parts[c];
            m_part[node] = m_parts++;
        } else {
            m_part[node] = m_part[root[node]];
        }
        m_nodes.push_back(node);
    }
    std::fill(m_active.begin(), m_active.end(), std::uint8_t{0});
    for (const std::int32_t node : m_nodes) {
        m_entries[node] = 0;
        for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
            const std::int32_t source = m_graph.input_sources[e];
            if (!m_boundary[e] || m_part[source] == none) continue;
            activate(node);
            activate(source);
            m_entries[node] += m_part[source] != m_part[node];
        }
    }
    for (Front* front : {&m_forward, &m_backward}) {
        std::fill(front->found_mark.begin(), front->found_mark.end(), 0);
    }
    std::fill(m_order.begin(), m_order.end(), none);
    m_last_mark = m_visited = 0;
}

// Sorts by what does not change: no source that others read too, a leaf as source, a place in a row of nodes,
// the number of inputs to cut, and the node.
void Isolation::rank_candidates() {
    std::int32_t most_inputs = 0;
    for (const std::int32_t node : m_nodes) {
        std::int32_t inner_inputs = 0;
        bool shares_source = false, has_leaf_input = false;
        for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
            if (m_boundary[e]) continue;
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
    m_entered.assign((candidates + 63) / 64, 0);
    m_next_open = m_first_entered = 0;
    for (const std::int32_t node : m_nodes) {
        if (m_class[node] >> 3 == 0) continue;
        m_slot[node] = m_class_end[class_of(node)]++;
        m_candidates[m_slot[node]] = node;
        enter(node, 0);
    }
}

// Candidates are cut off by rank, those that boundaries enter first. It is not known yet where boundaries
// will enter, but most cuts do follow this order, so most of the edges chosen here hold a part together until
// the very cut that splits it.
void Isolation::span_parts() {
    m_spanning.start(m_nodes.data(), m_nodes.size());
    for (const bool entered : {false, true}) {
        for (std::size_t i = m_candidates.size(); i-- > 0;) {
            if ((m_entered[i / 64] >> (i % 64) & 1) == entered) m_spanning.add_inputs(m_candidates[i]);
        }
    }
}

std::int32_t Isolation::take_best() {
    for (; m_first_entered < m_entered.size(); ++m_first_entered) {
        while (const std::uint64_t word = m_entered[m_first_entered]) {
            std::size_t bit = 0;
            while (!(word >> bit & 1)) ++bit;
            const std::int32_t node = m_candidates[m_first_entered * 64 + bit];
            forget(node);
            if (m_circle[m_part[node]] != none) return node;
        }
    }
    while (m_next_open < m_candidates.size()) {
        const std::int32_t node = m_candidates[m_next_open++];
        if (m_slot[node] == none) continue;
        forget(node);
        if (m_circle[m_part[node]] != none) return node;
    }
    return none;
}

void Isolation::forget(std::int32_t node) {
    m_entered[m_slot[node] / 64] &= ~(std::uint64_t{1} << (m_slot[node] % 64));
    m_slot[node] = none;
}

void Isolation::enter(std::int32_t node, std::int32_t change) {
    m_entries[node] += change;
    if (m_slot[node] == none) return;
    const std::size_t word = m_slot[node] / 64;
    const std::uint64_t bit = std::uint64_t{1} << (m_slot[node] % 64);
    m_entered[word] = m_entries[node] > 0 ? m_entered[word] | bit : m_entered[word] & ~bit;
    if (m_entries[node] > 0) m_first_entered = std::min(m_first_entered, word);
}

void Isolation::cut_off(std::int32_t node) {
    m_cuts.clear();
    activate(node);
    for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
        if (m_boundary[e]) continue;
        m_cuts.push_back(e);
        m_boundary[e] = !m_spanning.is_chosen(e);  // these change nothing, and the chosen ones come in turn
        activate(m_graph.input_sources[e]);
    }
    for (const std::int32_t e : m_cuts) {
        if (m_boundary[e]) continue;
        m_boundary[e] = 1;
        const std::vector<std::int32_t>& nodes = m_spanning.cut(e, node);
        if (!nodes.empty()) move_out(nodes);
    }
    // The sources' parts lead to the node's, but it led to them only through the edges that are now cut.
    const std::int32_t part = m_part[node];
    m_questions.clear();
    for (const std::int32_t e : m_cuts) {
        const std::int32_t source_part = m_part[m_graph.input_sources[e]];
        if (source_part != part) m_questions.emplace_back(part, source_part);
    }
    if (!m_questions.empty()) renew_circle(m_circle[part]);
}

void Isolation::activate(std::int32_t node) {
    if (m_active[node]) return;
    m_active[node] = 1;
    link(node, m_part[node]);
}

void Isolation::link(std::int32_t node, std::int32_t part) {
    m_previous[node] = none;
    m_next[node] = m_first[part];
    if (m_first[part] != none) m_previous[m_first[part]] = node;
    m_first[part] = node;
}

void Isolation::unlink(std::int32_t node) {
    const std::int32_t next = m_next[node], previous = m_previous[node];
    if (next != none) m_previous[next] = previous;
    (previous == none ? m_first[m_part[node]] : m_next[previous]) = next;
}

// Makes a part of some nodes of another part.
void Isolation::move_out(const std::vector<std::int32_t>& nodes) {
    const std::int32_t from = m_part[nodes[0]], to = m_parts++;
    ++m_circle_parts[m_circle[to] = m_circle[from]];
    m_first[to] = none;
    for (const std::int32_t node : nodes) {
        if (m_active[node]) {
            unlink(node);
            link(node, to);
        }
        m_part[node] = to;
    }
    for (const std::int32_t node : nodes) {
        if (!m_active[node]) continue;
        std::int32_t entries = 0;
        for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
            entries += m_part[m_graph.input_sources[e]] == from;
        }
        if (entries > 0) enter(node, entries);
        for (std::int32_t k = m_graph.output_offsets[node]; k < m_graph.output_offsets[node + 1]; ++k) {
            if (m_part[m_graph.output_readers[k]] == from) enter(m_graph.output_readers[k], 1);
        }
    }
}

// Takes out of a circle what no longer belongs to it, until the rest closes again.
//
// Throughout, the circle would close if m_questions were edges. A question "does a lead to b?" is dropped
// when the search ahead from a meets the search back from b. Otherwise one of them ends: nothing leads out of
// what it found, or nothing into it, and it leaves the circle. A search goes on where it stopped when the
// next question begins or ends at the same part.
void Isolation::renew_circle(std::int32_t circle) {
    Front *ahead = &m_forward, *back = &m_backward;
    ahead->parts.assign(1, none);
    back->parts.assign(1, none);
    while (!m_questions.empty()) {
        const auto [from, to] = m_questions.back();
        m_questions.pop_back();
        if (from == to) continue;
        if (ahead->parts[0] != from) begin(*ahead, from);
        if (back->parts[0] != to) begin(*back, to);
        bool met = ahead->found(to) || back->found(from), ahead_ends = false, back_ends = false;
        while (!met && !(ahead_ends && ahead->steps <= back->steps) &&
               !(back_ends && back->steps <= ahead->steps)) {
            // The search that has done less, so that the smaller of the two sets leaves.
            if (!ahead_ends && (back_ends || ahead->steps <= back->steps)) {
                ahead_ends = !step(*ahead, m_outputs, *back, met);
            } else {
                back_ends = !step(*back, m_inputs, *ahead, met);
            }
        }
        m_work += ahead->steps + back->steps;
        if (met) continue;
        m_questions.emplace_back(from, to);
        const bool leaves_ahead = ahead_ends && ahead->steps <= back->steps;
        Front& left = leaves_ahead ? *ahead : *back;
        leave(left, circle, leaves_ahead);
        left.parts.assign(1, none);
    }
}

void Isolation::begin(Front& front, std::int32_t part) {
    front.parts.assign(1, part);
    front.part = front.steps = 0;
    front.node = m_first[part];
    front.edge = front.edges_end = none;
    front.mark = front.found_mark[part] = ++m_last_mark;
}

// Follows one more edge; false when there is none.
bool Isolation::step(Front& front, const Edges& edges, const Front& other, bool& met) const {
    while (front.edge == front.edges_end) {
        while (front.node == none) {
            if (front.part + 1 == front.parts.size()) return false;
            front.node = m_first[front.parts[++front.part]];
        }
        front.edge = edges.offsets[front.node];
        front.edges_end = edges.offsets[front.node + 1];
        front.node = m_next[front.node];
        ++front.steps;
    }
    ++front.steps;
    const std::int32_t part = m_part[edges.ends[front.edge++]];
    if (part == none || m_circle[part] != m_circle[front.parts[0]] || front.found(part)) return true;
    front.found_mark[part] = front.mark;
    front.parts.push_back(part);
    met = other.found(part);
    return true;
}

// Takes what a search found out of its circle; circles may remain in there. Whatever of the rest led into the
// set, led on to where a question leads out of it, and must do so without the set (or all that upside down).
void Isolation::leave(const Front& left, std::int32_t circle, bool forward) {
    const Edges& edges = forward ? m_inputs : m_outputs;
    const std::int32_t left_circle = new_circle(left.parts.size());
    for (const std::int32_t part : left.parts) m_circle[part] = left_circle;
    m_circle_parts[circle] -= m_circle_parts[left_circle];
    m_into.clear();
    m_out_of.clear();
    m_kept_questions.clear();
    for (const auto& [from, to] : m_questions) {
        const std::int32_t near = forward ? from : to, far = forward ? to : from;
        if (left.found(near) && !left.found(far)) m_out_of.push_back(far);
        if (!left.found(near) && left.found(far)) m_into.push_back(near);
        if (!left.found(near) && !left.found(far)) m_kept_questions.emplace_back(from, to);
    }
    for (const std::int32_t part : left.parts) {
        for (std::int32_t node = m_first[part]; node != none; node = m_next[node]) {
            for (std::int32_t k = edges.offsets[node]; k < edges.offsets[node + 1]; ++k) {
                const std::int32_t end = m_part[edges.ends[k]];
                if (end != none && m_circle[end] == circle) m_into.push_back(end);
            }
        }
    }
    m_questions.swap(m_kept_questions);
    const auto ask = [&](std::int32_t near, std::int32_t far) {
        forward ? m_questions.emplace_back(near, far) : m_questions.emplace_back(far, near);
    };
    std::sort(m_into.begin(), m_into.end());
    m_into.erase(std::unique(m_into.begin(), m_into.end()), m_into.end());
    for (std::size_t i = 1; i < m_out_of.size(); ++i) ask(m_out_of[i - 1], m_out_of[i]);
    for (const std::int32_t part : m_into) ask(part, m_out_of[0]);
    if (left.parts.size() == 1) {
        retire(left.parts[0]);
    } else {
        find_circles(left.parts, left_circle);
    }
    if (m_circle_parts[circle] == 1) retire(m_out_of[0]);
}

std::int32_t Isolation::new_circle(std::size_t parts) {
    m_circle_parts.push_back(static_cast<std::int32_t>(parts));
    return static_cast<std::int32_t>(m_circle_parts.size()) - 1;
}

// Tarjan's algorithm over the parts of a former circle.
void Isolation::find_circles(const std::vector<std::int32_t>& parts, std::int32_t circle) {
    const std::int32_t first = m_visited;
    const auto enter_part = [&](std::int32_t part) {
        m_order[part] = m_low[part] = m_visited++;
        m_at_node[part] = m_first[part];
        m_at_edge[part] = m_outputs.offsets[m_first[part]];
        m_path.push_back(part);
        m_stack.push_back(part);
    };
    // The part that the next edge leads to, or `none` after the last one.
    const auto next_part = [&](std::int32_t part) {
        for (std::int32_t& node = m_at_node[part]; node != none;) {
            if (m_at_edge[part] < m_outputs.offsets[node + 1]) {
                const std::int32_t end = m_part[m_outputs.ends[m_at_edge[part]++]];
                if (end != none && m_circle[end] == circle && end != part) return end;
                continue;
            }
            node = m_next[node];
            if (node != none) m_at_edge[part] = m_outputs.offsets[node];
        }
        return none;
    };
    for (const std::int32_t start : parts) {
        if (m_circle[start] != circle) continue;
        enter_part(start);
        while (!m_path.empty()) {
            const std::int32_t part = m_path.back(), next = next_part(part);
            if (next != none) {
                if (m_order[next] < first) {
                    enter_part(next);
                } else {
                    m_low[part] = std::min(m_low[part], m_order[next]);
                }
                continue;
            }
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
    const std::int32_t circle = new_circle(0);
    std::int32_t member = none;
    do {
        member = m_stack.back();
        m_stack.pop_back();
        m_circle[member] = circle;
        ++m_circle_parts[circle];
    } while (member != part);
}

// A part that waits for nobody who waits for it.
void Isolation::retire(std::int32_t part) {
    m_circle[part] = none;
    for (std::int32_t node = m_first[part]; node != none; node = m_next[node]) {
        for (std::int32_t k = m_graph.output_offsets[node]; k < m_graph.output_offsets[node + 1]; ++k) {
            const std::int32_t reader = m_graph.output_readers[k];
            if (m_part[reader] != none && m_part[reader] != part) enter(reader, -1);
        }
    }
}

}  // namespace ov_autoplace
