#include "ov_autoplace/circle_trees.hpp"

#include <algorithm>

namespace ov_autoplace {
namespace {

constexpr std::int32_t none = Parts::none;

}  // namespace

CircleTrees::CircleTrees(const PartitionGraph& graph, Parts& parts)
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
void CircleTrees::for_each_edge(const Edges& edges, std::int32_t part, const Use& use) {
    const std::int32_t circle = m_parts.circle[part];
    for (std::int32_t node = m_parts.first[part]; node != none; node = m_parts.next[node]) {
        m_work += 1 + edges.offsets[node + 1] - edges.offsets[node];
        for (std::int32_t k = edges.offsets[node]; k < edges.offsets[node + 1]; ++k) {
            const std::int32_t end = edges.ends[k], other = m_parts.part[end];
            if (other == none || other == part || m_parts.circle[other] != circle) continue;
            if (use(node, end, other)) return;
        }
    }
}

void CircleTrees::start() {
    m_work = m_visited = 0;
    std::fill(m_order.begin(), m_order.end(), none);
    std::fill(m_loose.begin(), m_loose.end(), std::uint8_t{0});
    for (Tree& tree : m_trees) tree.suspects.clear();
    const std::size_t circles = m_parts.circle_parts.size();
    m_root.assign(circles, none);
    std::vector<std::int32_t>& begin = m_row;
    begin.assign(circles + 1, 0);
    for (std::size_t c = 0; c < circles; ++c) begin[c + 1] = begin[c] + m_parts.circle_parts[c];
    m_left.resize(m_parts.count);
    for (std::int32_t part = 0; part < m_parts.count; ++part) m_left[begin[m_parts.circle[part]]++] = part;
    for (std::size_t c = 0, first = 0; c < circles; ++c) {
        const auto count = static_cast<std::size_t>(m_parts.circle_parts[c]);
        if (count > 0) grow_circle(&m_left[first], count);
        first += count;
    }
}

void CircleTrees::split(std::int32_t from, std::int32_t to) {
    for (Tree& tree : m_trees) {
        tree.level[to] = tree.level[from];
        const bool moves = tree.near[from] != none && m_parts.part[tree.near[from]] == to;
        tree.near[to] = moves ? tree.near[from] : none;
        tree.far[to] = tree.far[from];
        if (moves) tree.near[from] = none;
        tree.suspects.push_back(moves ? from : to);
    }
}

const std::vector<std::int32_t>& CircleTrees::renew(std::int32_t circle) {
    m_retired.clear();
    for (Tree& tree : m_trees) settle(tree, circle);
    if (m_parts.circle_parts[circle] == 1) {
        m_parts.circle[m_root[circle]] = none;
        m_retired.push_back(m_root[circle]);
    }
    return m_retired;
}

// Where a part stands in a tree at some level; see the head of the header.
std::int64_t CircleTrees::order_at(const Tree& tree, std::int32_t part, std::int32_t level) const {
    std::int32_t within = 0;
    if (m_parts.is_single(part)) {
        const std::int32_t node = m_parts.first[part];
        within = tree.descends ? node + 1 : m_graph.size() - node;
    }
    return static_cast<std::int64_t>(level) << 32 | within;
}

std::int64_t CircleTrees::order_of(const Tree& tree, std::int32_t part) const {
    if (part == m_root[m_parts.circle[part]]) return 0;  // before all others, also as a single node
    return order_at(tree, part, tree.level[part]);
}

// Makes the largest of a circle's parts its root, and grows both trees.
void CircleTrees::grow_circle(const std::int32_t* parts, std::size_t count) {
    std::int32_t root = parts[0];
    for (std::size_t i = 1; i < count; ++i) {
        if (m_parts.size[parts[i]] > m_parts.size[root]) root = parts[i];
    }
    m_root[m_parts.circle[root]] = root;
    for (Tree& tree : m_trees) grow(tree, parts, count);
}

// Level by level from the root; every part is reached, as the circle closes.
void CircleTrees::grow(Tree& tree, const std::int32_t* parts, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) m_loose[parts[i]] = 1;
    const std::int32_t root = m_root[m_parts.circle[parts[0]]];
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

// Finds new places in a tree for what has lost its own; what finds none leaves the circle.
void CircleTrees::settle(Tree& tree, std::int32_t circle) {
    find_loose(tree, circle);
    hang_up_loose(tree);
    if (!m_left.empty()) leave(circle);
}

// Collects the parts that must move down in the order: one after the other, so that whoever may be a parent
// is known to stay.
void CircleTrees::find_loose(Tree& tree, std::int32_t circle) {
    m_found_loose.clear();
    m_heap.clear();
    const auto suspect = [&](std::int32_t part) {
        m_heap.push_back({order_of(tree, part), part, none, none});
        std::push_heap(m_heap.begin(), m_heap.end());
    };
    for (const std::int32_t part : tree.suspects) {
        if (m_parts.circle[part] == circle && part != m_root[circle]) suspect(part);
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

bool CircleTrees::has_parent(const Tree& tree, std::int32_t part) const {
    if (tree.near[part] == none) return false;
    const std::int32_t parent = m_parts.part[tree.far[part]];
    return !m_loose[parent] && order_of(tree, parent) < order_of(tree, part);
}

bool CircleTrees::find_parent(Tree& tree, std::int32_t part) {
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
void CircleTrees::hang_up_loose(Tree& tree) {
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

// Takes m_left out of its circle; there may be circles in it. What stays keeps its place in both trees:
// whoever reaches the root over a part that left would have left with it, and so upside down.
void CircleTrees::leave(std::int32_t circle) {
    const std::int32_t former = m_parts.new_circle();
    m_root.push_back(none);
    for (const std::int32_t part : m_left) m_parts.circle[part] = former;
    m_parts.circle_parts[circle] -= static_cast<std::int32_t>(m_left.size());
    if (m_left.size() == 1) {
        m_parts.circle[m_left[0]] = none;
        m_retired.push_back(m_left[0]);
    } else {
        find_circles(m_left, former);
    }
}

// Tarjan's algorithm over the parts of a former circle.
void CircleTrees::find_circles(const std::vector<std::int32_t>& parts, std::int32_t circle) {
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
                if (end != none && m_parts.circle[end] == circle && end != part) return end;
                continue;
            }
            node = m_parts.next[node];
            if (node != none) m_at_edge[part] = outputs.offsets[node];
        }
        return none;
    };
    for (const std::int32_t start : parts) {
        if (m_parts.circle[start] != circle) continue;
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
void CircleTrees::close_component(std::int32_t part) {
    std::size_t begin = m_stack.size() - 1;
    while (m_stack[begin] != part) --begin;
    const std::size_t count = m_stack.size() - begin;
    if (count == 1) {
        m_parts.circle[part] = none;
        m_retired.push_back(part);
    } else {
        const std::int32_t circle = m_parts.new_circle();
        m_root.push_back(none);
        m_parts.circle_parts[circle] = static_cast<std::int32_t>(count);
        for (std::size_t i = begin; i < m_stack.size(); ++i) m_parts.circle[m_stack[i]] = circle;
        grow_circle(&m_stack[begin], count);
    }
    m_stack.resize(begin);
}

}  // namespace ov_autoplace
