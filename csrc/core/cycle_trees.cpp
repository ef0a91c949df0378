#include "ov_autoplace/cycle_trees.hpp"

#include <algorithm>

namespace ov_autoplace {
namespace {

constexpr std::int32_t none = Parts::none;

}  // namespace

CycleTrees::CycleTrees(const PartitionGraph& graph, Parts& parts)
    : m_graph(graph),
      m_parts(parts),
      m_loose(graph.size()),
      m_order(graph.size()),
      m_low(graph.size()),
      m_at_node(graph.size()),
      m_at_edge(graph.size()) {
    const Edges outputs{graph.output_offsets.data(), graph.output_readers.data()};
    const Edges inputs{graph.input_offsets.data(), graph.input_sources.data()};
    m_trees[0].to_children = m_trees[1].to_parents = outputs;
    m_trees[0].to_parents = m_trees[1].to_children = inputs;
    for (Tree& tree : m_trees) {
        tree.descends = &tree == &m_trees[0];
        for (auto* values : {&tree.level, &tree.near, &tree.far}) values->resize(graph.size());
    }
}

template <class Use>
void CycleTrees::for_each_edge(const Edges& edges, std::int32_t part, const Use& use) {
    const std::int32_t cycle = m_parts.cycle[part];
    for (std::int32_t node = m_parts.first[part]; node != none; node = m_parts.next[node]) {
        m_work += 1 + edges.offsets[node + 1] - edges.offsets[node];
        for (std::int32_t k = edges.offsets[node]; k < edges.offsets[node + 1]; ++k) {
            const std::int32_t end = edges.ends[k], other = m_parts.part[end];
            if (other == none || other == part || m_parts.cycle[other] != cycle) continue;
            if (use(node, end, other)) return;
        }
    }
}

void CycleTrees::start() {
    m_work = m_visited = 0;
    std::fill(m_order.begin(), m_order.end(), none);
    std::fill(m_loose.begin(), m_loose.end(), std::uint8_t{0});
    for (Tree& tree : m_trees) tree.suspects.clear();
    const std::size_t cycles = m_parts.cycle_parts.size();
    m_root.assign(cycles, none);
    std::vector<std::int32_t>& begin = m_row;
    begin.assign(cycles + 1, 0);
    for (std::size_t c = 0; c < cycles; ++c) begin[c + 1] = begin[c] + m_parts.cycle_parts[c];
    m_left.resize(m_parts.count);
    for (std::int32_t part = 0; part < m_parts.count; ++part) m_left[begin[m_parts.cycle[part]]++] = part;
    for (std::size_t c = 0, first = 0; c < cycles; ++c) {
        const auto count = static_cast<std::size_t>(m_parts.cycle_parts[c]);
        if (count > 0) grow_cycle(&m_left[first], count);
        first += count;
    }
}

void CycleTrees::split(std::int32_t from, std::int32_t to) {
    for (Tree& tree : m_trees) {
        tree.level[to] = tree.level[from];
        const bool moves = tree.near[from] != none && m_parts.part[tree.near[from]] == to;
        tree.near[to] = moves ? tree.near[from] : none;
        tree.far[to] = tree.far[from];
        if (moves) tree.near[from] = none;
        tree.suspects.push_back(moves ? from : to);
    }
}

const std::vector<std::int32_t>& CycleTrees::renew(std::int32_t cycle) {
    m_retired.clear();
    for (Tree& tree : m_trees) settle(tree, cycle);
    if (m_parts.cycle_parts[cycle] == 1) {
        m_parts.cycle[m_root[cycle]] = none;
        m_retired.push_back(m_root[cycle]);
    }
    return m_retired;
}

// Where a part is in a tree at some level; see the head of the header.
std::int64_t CycleTrees::order_at(const Tree& tree, std::int32_t part, std::int32_t level) const {
    std::int32_t within = 0;
    if (m_parts.is_single(part)) {
        const std::int32_t node = m_parts.first[part];
        within = tree.descends ? node + 1 : m_graph.size() - node;
    }
    return static_cast<std::int64_t>(level) << 32 | within;
}

std::int64_t CycleTrees::order_of(const Tree& tree, std::int32_t part) const {
    if (part == m_root[m_parts.cycle[part]]) return 0;  // before all others, also as a single node
    return order_at(tree, part, tree.level[part]);
}

// Makes the largest of a cycle's parts its root, and grows both trees.
void CycleTrees::grow_cycle(const std::int32_t* parts, std::size_t count) {
    std::int32_t root = parts[0];
    for (std::size_t i = 1; i < count; ++i) {
        if (m_parts.size[parts[i]] > m_parts.size[root]) root = parts[i];
    }
    m_root[m_parts.cycle[root]] = root;
    for (Tree& tree : m_trees) grow(tree, parts, count);
}

// Level by level from the root; every part is reached, as the cycle closes.
void CycleTrees::grow(Tree& tree, const std::int32_t* parts, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) m_loose[parts[i]] = 1;
    const std::int32_t root = m_root[m_parts.cycle[parts[0]]];
    m_loose[root] = 0;
    tree.near[root] = none;
    m_next_row.assign(1, root);
    for (std::int32_t level = 0; !m_next_row.empty(); ++level) {
        m_row.swap(m_next_row);
        m_next_row.clear();
        while (!m_row.empty()) {
            const std::int32_t part = m_row.back();
            m_row.pop_back();
            tree.level[part] = level;
            for_each_edge(tree.to_children, part,
                          [&](std::int32_t node, std::int32_t end, std::int32_t child) {
                              if (!m_loose[child]) return false;
                              m_loose[child] = 0;
                              tree.near[child] = end;
                              tree.far[child] = node;
                              (m_parts.is_single(child) ? m_row : m_next_row).push_back(child);
                              return false;
                          });
        }
    }
}

// Finds new places in a tree for what has lost its own; what finds none leaves the cycle.
void CycleTrees::settle(Tree& tree, std::int32_t cycle) {
    find_loose(tree, cycle);
    hang_up_loose(tree);
    if (!m_left.empty()) leave(cycle);
}

// Collects the parts that must move down in the order: one after the other, so that whoever may be a parent
// is known to stay.
void CycleTrees::find_loose(Tree& tree, std::int32_t cycle) {
    m_found_loose.clear();
    m_heap.clear();
    const auto suspect = [&](std::int32_t part) {
        m_heap.push_back({order_of(tree, part), part, none, none});
        std::push_heap(m_heap.begin(), m_heap.end());
    };
    for (const std::int32_t part : tree.suspects) {
        if (m_parts.cycle[part] == cycle && part != m_root[cycle]) suspect(part);
    }
    tree.suspects.clear();
    while (!m_heap.empty()) {
        std::pop_heap(m_heap.begin(), m_heap.end());
        const std::int32_t part = m_heap.back().part;
        m_heap.pop_back();
        if (m_loose[part]) continue;
        if (has_parent(tree, part) || find_parent(tree, part)) continue;
        m_loose[part] = 1;
        m_found_loose.push_back(part);
        for_each_edge(tree.to_children, part, [&](std::int32_t, std::int32_t, std::int32_t child) {
            if (!m_loose[child] && tree.near[child] != none && m_parts.part[tree.far[child]] == part) {
                suspect(child);
            }
            return false;
        });
    }
}

bool CycleTrees::has_parent(const Tree& tree, std::int32_t part) const {
    if (tree.near[part] == none) return false;
    const std::int32_t parent = m_parts.part[tree.far[part]];
    return !m_loose[parent] && order_of(tree, parent) < order_of(tree, part);
}

bool CycleTrees::find_parent(Tree& tree, std::int32_t part) {
    tree.near[part] = none;
    const std::int64_t order = order_of(tree, part);
    for_each_edge(tree.to_parents, part, [&](std::int32_t node, std::int32_t end, std::int32_t parent) {
        if (m_loose[parent] || order_of(tree, parent) >= order) return false;
        tree.near[part] = node;
        tree.far[part] = end;
        return true;
    });
    return tree.near[part] != none;
}

// Dijkstra's algorithm over the loose parts. Puts those that it does not reach into m_left.
void CycleTrees::hang_up_loose(Tree& tree) {
    m_heap.clear();
    const auto level_below = [&](std::int32_t parent, std::int32_t part) {
        return tree.level[parent] + !m_parts.is_single(part);
    };
    for (const std::int32_t part : m_found_loose) {
        std::int32_t level = none;
        Place place{0, part, none, none};
        for_each_edge(tree.to_parents, part, [&](std::int32_t node, std::int32_t end, std::int32_t parent) {
            if (m_loose[parent] || (level != none && level_below(parent, part) >= level)) return false;
            level = level_below(parent, part);
            place.near = node;
            place.far = end;
            return false;
        });
        if (level == none) continue;
        place.order = order_at(tree, part, level);
        m_heap.push_back(place);
    }
    std::make_heap(m_heap.begin(), m_heap.end());
    while (!m_heap.empty()) {
        std::pop_heap(m_heap.begin(), m_heap.end());
        const Place place = m_heap.back();
        m_heap.pop_back();
        if (!m_loose[place.part]) continue;
        m_loose[place.part] = 0;
        tree.level[place.part] = static_cast<std::int32_t>(place.order >> 32);
        tree.near[place.part] = place.near;
        tree.far[place.part] = place.far;
        for_each_edge(
            tree.to_children, place.part, [&](std::int32_t node, std::int32_t end, std::int32_t child) {
                if (!m_loose[child]) return false;
                m_heap.push_back({order_at(tree, child, level_below(place.part, child)), child, end, node});
                std::push_heap(m_heap.begin(), m_heap.end());
                return false;
            });
    }
    m_left.clear();
    for (const std::int32_t part : m_found_loose) {
        if (!m_loose[part]) continue;
        m_loose[part] = 0;
        m_left.push_back(part);
    }
}

// Takes m_left out of its cycle; there may be cycles in it. What stays keeps its place in both trees:
// whoever reaches the root over a part that left would have left with it, and so upside down.
void CycleTrees::leave(std::int32_t cycle) {
    const std::int32_t former = m_parts.new_cycle();
    m_root.push_back(none);
    for (const std::int32_t part : m_left) m_parts.cycle[part] = former;
    m_parts.cycle_parts[cycle] -= static_cast<std::int32_t>(m_left.size());
    if (m_left.size() == 1) {
        m_parts.cycle[m_left[0]] = none;
        m_retired.push_back(m_left[0]);
    } else {
        find_cycles(m_left, former);
    }
}

// Tarjan's algorithm over the parts of a former cycle.
void CycleTrees::find_cycles(const std::vector<std::int32_t>& parts, std::int32_t cycle) {
    const Edges& outputs = m_trees[0].to_children;
    const std::int32_t first = m_visited;
    const auto enter_part = [&](std::int32_t part) {
        m_order[part] = m_low[part] = m_visited++;
        m_at_node[part] = m_parts.first[part];
        m_at_edge[part] = outputs.offsets[m_parts.first[part]];
        m_path.push_back(part);
        m_stack.push_back(part);
    };
    // The part that the next edge leads to, or none after the last one.
    const auto next_part = [&](std::int32_t part) {
        for (std::int32_t& node = m_at_node[part]; node != none;) {
            if (m_at_edge[part] < outputs.offsets[node + 1]) {
                const std::int32_t end = m_parts.part[outputs.ends[m_at_edge[part]++]];
                ++m_work;
                if (end != none && m_parts.cycle[end] == cycle && end != part) return end;
                continue;
            }
            node = m_parts.next[node];
            if (node != none) m_at_edge[part] = outputs.offsets[node];
        }
        return none;
    };
    for (const std::int32_t start : parts) {
        if (m_parts.cycle[start] != cycle) continue;
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
void CycleTrees::close_component(std::int32_t part) {
    std::size_t begin = m_stack.size() - 1;
    while (m_stack[begin] != part) --begin;
    const std::size_t count = m_stack.size() - begin;
    if (count == 1) {
        m_parts.cycle[part] = none;
        m_retired.push_back(part);
    } else {
        const std::int32_t cycle = m_parts.new_cycle();
        m_root.push_back(none);
        m_parts.cycle_parts[cycle] = static_cast<std::int32_t>(count);
        for (std::size_t i = begin; i < m_stack.size(); ++i) m_parts.cycle[m_stack[i]] = cycle;
        grow_cycle(&m_stack[begin], count);
    }
    m_stack.resize(begin);
}

}  // namespace ov_autoplace
