// Which parts still wait for each other while parts are split (rule 3, see partition_isolation.hpp).
//
// Every cycle has a root, its largest part, and two trees over its parts: one of ways from the root to each
// part, one of ways from each part to the root. While both reach all parts, the cycle closes. A split takes
// the edge to its parent from one of the halves. If that half finds no other parent, it and what hangs on it
// are looked at; what no longer gets into the tree leaves the cycle.
//
// A parent must come before its child in an order that no split turns around: by level, parts of several
// nodes first, then single nodes in the graph's order. Edges lead down the graph, so a way over single
// nodes, of which there are tens of thousands in the end, stays on one level; only a part of several nodes
// lets a way go back up and costs one. Levels only rise. Their number has no bound but that of parts: where a
// large part loses its parent again and again, single nodes below it are hung up anew each time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ov_autoplace/partition_graph.hpp"
#include "ov_autoplace/partition_parts.hpp"

namespace ov_autoplace {

// Owns all working memory, so every thread needs its own.
class CycleTrees {
public:
    // Keeps references; takes parts out of cycles and makes new cycles of them.
    CycleTrees(const PartitionGraph& graph, Parts& parts);

    // Grows the trees of all cycles.
    void start();
    // Part `to` has been moved out of part `from`, which is in a cycle.
    void split(std::int32_t from, std::int32_t to);
    // After splits in one cycle: finds out what is left of it. Returns the parts that are in no cycle any
    // more; valid until the next call.
    const std::vector<std::int32_t>& renew(std::int32_t cycle);
    // Edges followed since this was last asked.
    std::size_t take_work() { return std::exchange(m_work, 0); }

private:
    // Edges seen from their one or their other end.
    struct Edges {
        const std::int32_t* offsets;
        const std::int32_t* ends;
    };
    struct Tree {
        Edges to_parents, to_children;
        bool descends;                    // with the edges of the graph, or against them
        std::vector<std::int32_t> level;  // per part
        // Per part: the edge between it and its parent, by its end in the part, or none, and that in the
        // parent.
        std::vector<std::int32_t> near, far;
        std::vector<std::int32_t> suspects;  // parts that lost their parent
    };
    // A part and how it may hang on a parent. The order is that of the tree.
    struct Place {
        std::int64_t order;
        std::int32_t part, near, far;
        bool operator<(const Place& other) const { return order > other.order; }  // heaps hold the first
    };

    void grow(Tree& tree, const std::int32_t* parts, std::size_t count);
    void grow_cycle(const std::int32_t* parts, std::size_t count);
    void settle(Tree& tree, std::int32_t cycle);
    void find_loose(Tree& tree, std::int32_t cycle);
    void hang_up_loose(Tree& tree);
    bool has_parent(const Tree& tree, std::int32_t part) const;
    bool find_parent(Tree& tree, std::int32_t part);
    void leave(std::int32_t cycle);
    void find_cycles(const std::vector<std::int32_t>& parts, std::int32_t cycle);
    void close_component(std::int32_t part);

    std::int64_t order_at(const Tree& tree, std::int32_t part, std::int32_t level) const;
    std::int64_t order_of(const Tree& tree, std::int32_t part) const;
    // Calls use(node, end, part of end) for the edges that lead from a part to others of its cycle, until it
    // says that it has seen enough.
    template <class Use>
    void for_each_edge(const Edges& edges, std::int32_t part, const Use& use);

    const PartitionGraph& m_graph;
    Parts& m_parts;
    Tree m_trees[2];
    std::vector<std::int32_t> m_root;   // per cycle
    std::vector<std::uint8_t> m_loose;  // per part: has no place in the tree at hand
    std::vector<std::int32_t> m_retired;

    // Scratch.
    std::vector<Place> m_heap;
    std::vector<std::int32_t> m_found_loose, m_left, m_row, m_next_row;
    std::vector<std::int32_t> m_order, m_low, m_at_node, m_at_edge;  // per part
    std::vector<std::int32_t> m_path, m_stack;
    std::int32_t m_visited = 0;
    std::size_t m_work = 0;
};

}  // namespace ov_autoplace
