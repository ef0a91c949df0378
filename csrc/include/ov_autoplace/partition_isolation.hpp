// The last step of HETERO's partitioning (rule 3 in partition.hpp): while subgraphs wait for each other in a
// circle, the best ranked node of all circles is cut off from its inputs.
//
// A model may need thousands of such cuts. Each one splits one subgraph, so everything here is updated in
// place: the smaller half of the subgraph moves out, and a search from both ends, which stops where they
// meet, tells whether the circle still closes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ov_autoplace/partition_graph.hpp"

namespace ov_autoplace {

// Owns all working memory, so every thread needs its own.
class Isolation {
public:
    // Keeps a reference to `graph`.
    explicit Isolation(const PartitionGraph& graph);

    // `root` is the subgraph of each node, named by its smallest node; `circle` the circle of each root, or
    // -1; `boundary` tells the edges that are cut. Cuts until no circle is left.
    void run(std::vector<std::int32_t>& root, const std::vector<std::int32_t>& circle,
             std::vector<std::uint8_t>& boundary);

private:
    // Edges seen from their one or their other end.
    struct Edges {
        const std::int32_t* offsets;
        const std::int32_t* ends;
    };
    // A search that spreads over the parts of a circle, one member node per step.
    struct Front {
        std::vector<std::int32_t> parts;       // found so far
        std::vector<std::int32_t> found_mark;  // per part: equals `mark` if found
        std::size_t part = 0;
        std::int32_t member = 0;
        std::int32_t mark = 0;

        bool found(std::int32_t at) const { return found_mark[at] == mark; }
    };

    void collect_parts(const std::vector<std::int32_t>& root, const std::vector<std::int32_t>& circle);
    void rank_candidates(const std::vector<std::uint8_t>& boundary);
    std::int32_t take_best();
    void forget(std::int32_t node);
    void refresh(std::int32_t node);
    void refresh_readers(std::int32_t node);
    bool enters_from_circle(std::int32_t node) const;

    void separate(std::int32_t a, std::int32_t b);
    void move_out(const std::vector<std::int32_t>& nodes);

    void renew_circles(std::int32_t pivot);
    void start(Front& front, std::int32_t part);
    bool advance(Front& front, const Front& other, const Edges& edges, bool& met) const;
    void leave(const Front& front);
    void add_pending(const Front& left, std::int32_t circle, const Edges& edges);
    void find_circles(const std::vector<std::int32_t>& starts, std::int32_t circle, const Edges& edges);
    void close_component(std::int32_t part);
    void retire(std::int32_t part);

    const PartitionGraph& m_graph;
    const Edges m_outputs, m_inputs;
    std::vector<std::uint8_t>* m_boundary = nullptr;

    // Parts are the subgraphs that stood in a circle at the start, and what they split into. Part p has the
    // nodes m_members[m_begin[p] .. m_end[p]).
    std::vector<std::int32_t> m_nodes;     // of all parts, ascending
    std::vector<std::int32_t> m_part;      // per node, or -1
    std::vector<std::int32_t> m_position;  // per node: in m_members
    std::vector<std::int32_t> m_members, m_begin, m_end;
    std::vector<std::int32_t> m_circle;  // per part: its circle, or -1
    std::int32_t m_parts = 0;
    std::int32_t m_next_circle = 0;

    // Nodes with inputs to cut, best rank first. Of the rank only its first part changes on the way: whether
    // a boundary enters the node from another subgraph in a circle.
    std::vector<std::int32_t> m_candidates;
    std::vector<std::int32_t> m_slot;                // per node: in m_candidates, or -1
    std::vector<std::uint64_t> m_open, m_entered;    // bit per candidate: in a circle; and entered from one
    std::vector<std::int32_t> m_class, m_class_end;  // counting sort

    // Scratch.
    std::vector<std::int32_t> m_mark;  // per node
    std::int32_t m_last_mark = 0;
    std::vector<std::int32_t> m_seeds, m_pending, m_sides[2];
    Front m_main, m_other;
    std::vector<std::int32_t> m_order, m_low, m_next_member, m_next_edge;  // per part
    std::vector<std::int32_t> m_path, m_stack;
    std::int32_t m_visited = 0;
};

}  // namespace ov_autoplace
