// The last step of HETERO's partitioning (rule 3 in partition.hpp): while subgraphs wait for each other in a
// circle, the best ranked node of all circles is cut off from its inputs.
//
// A model may need tens of thousands of such cuts, so each one must cost little more than what it changes.
// Two questions follow a cut: does the subgraph still hang together (see spanning_edges.hpp), and does its
// circle still close? The latter is answered by two searches in turns, an edge at a time, which stop where
// they meet. Where they do not meet, the search that ends first has found what splits off, and the work was
// no more than that part's own edges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ov_autoplace/partition_graph.hpp"
#include "ov_autoplace/spanning_edges.hpp"

namespace ov_autoplace {

// Owns all working memory, so every thread needs its own.
class Isolation {
public:
    // Keeps references; `boundary` tells per edge whether it is cut, and is kept up to date.
    Isolation(const PartitionGraph& graph, std::vector<std::uint8_t>& boundary, SpanningEdges& spanning);

    // `root` is the subgraph of each node, named by its smallest node; `circle` the circle of each root, or
    // -1.
    void start(const std::vector<std::int32_t>& root, const std::vector<std::int32_t>& circle);
    // Cuts off one more node; false when no circle is left.
    bool cut_next();
    // Puts the subgraphs as they are now into `root`.
    void name_parts(std::vector<std::int32_t>& root);
    // Edges followed since this was last asked.
    std::size_t take_work() { return std::exchange(m_work, 0) + m_spanning.take_work(); }

private:
    // Edges seen from their one or their other end.
    struct Edges {
        const std::int32_t* offsets;
        const std::int32_t* ends;
    };
    // A search that spreads over the parts of a circle, one edge per step.
    struct Front {
        std::vector<std::int32_t> parts;       // found so far, the one where it began in front
        std::vector<std::int32_t> found_mark;  // per part: equals `mark` if found
        std::int32_t mark = 0;
        std::size_t part = 0;
        std::int32_t node = -1, edge = 0, edges_end = 0;
        std::size_t steps = 0;

        bool found(std::int32_t at) const { return found_mark[at] == mark; }
    };

    void collect_parts(const std::vector<std::int32_t>& root, const std::vector<std::int32_t>& circle);
    void rank_candidates();
    void span_parts();
    std::int32_t take_best();
    void forget(std::int32_t node);
    void enter(std::int32_t node, std::int32_t change);

    void cut_off(std::int32_t node);
    void activate(std::int32_t node);
    void link(std::int32_t node, std::int32_t part);
    void unlink(std::int32_t node);
    void move_out(const std::vector<std::int32_t>& nodes);

    void renew_circle(std::int32_t circle);
    void begin(Front& front, std::int32_t part);
    bool step(Front& front, const Edges& edges, const Front& other, bool& met) const;
    void leave(const Front& left, std::int32_t circle, bool forward);
    std::int32_t new_circle(std::size_t parts);
    void find_circles(const std::vector<std::int32_t>& parts, std::int32_t circle);
    void close_component(std::int32_t part);
    void retire(std::int32_t part);

    const PartitionGraph& m_graph;
    const Edges m_outputs, m_inputs;
    std::vector<std::uint8_t>& m_boundary;
    SpanningEdges& m_spanning;

    // Parts are the subgraphs that stood in a circle at the start, and what they split into.
    std::vector<std::int32_t> m_nodes;   // of all parts, ascending
    std::vector<std::int32_t> m_part;    // per node, or -1
    std::vector<std::int32_t> m_circle;  // per part: its circle, or -1
    std::int32_t m_parts = 0;
    std::vector<std::int32_t> m_circle_parts;  // per circle: how many parts it has
    // A list per part of its nodes with a cut edge: all that a search over parts has to look at.
    std::vector<std::int32_t> m_first;             // per part, or -1
    std::vector<std::int32_t> m_next, m_previous;  // per node, or -1
    std::vector<std::uint8_t> m_active;            // per node: stands in the list of its part

    // Nodes with inputs to cut, best rank first. Of the rank only its first part changes on the way: whether
    // a boundary enters the node from another subgraph in a circle.
    std::vector<std::int32_t> m_candidates;
    std::vector<std::int32_t> m_slot;                // per node: in m_candidates, or -1
    std::vector<std::int32_t> m_entries;             // per node: cut inputs from another part in a circle
    std::vector<std::uint64_t> m_entered;            // bit per candidate: m_entries is not 0
    std::size_t m_next_open = 0;                     // candidates before this one are cut off or forgotten
    std::size_t m_first_entered = 0;                 // words before this one of m_entered are 0
    std::vector<std::int32_t> m_class, m_class_end;  // counting sort

    // Reachabilities that are not known to hold: were they edges, the circle would close.
    std::vector<std::pair<std::int32_t, std::int32_t>> m_questions, m_kept_questions;

    // Scratch.
    std::int32_t m_last_mark = 0;
    std::vector<std::int32_t> m_cuts, m_into, m_out_of;
    Front m_forward, m_backward;
    std::vector<std::int32_t> m_order, m_low, m_at_node, m_at_edge;  // per part
    std::vector<std::int32_t> m_path, m_stack;
    std::int32_t m_visited = 0;
    std::size_t m_work = 0;
};

}  // namespace ov_autoplace
