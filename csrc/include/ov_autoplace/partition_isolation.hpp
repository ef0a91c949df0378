// The last step of HETERO's partitioning (rule 3 in partition.hpp): while subgraphs wait for each other in a
// cycle, the best ranked node of all cycles is cut off from its inputs.
//
// A model may need tens of thousands of such cuts, so each one must cost little more than what it changes.
// Two questions follow a cut: does the subgraph still hang together (see spanning_edges.hpp), and does its
// cycle still close (see cycle_trees.hpp)?
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ov_autoplace/cycle_trees.hpp"
#include "ov_autoplace/partition_graph.hpp"
#include "ov_autoplace/partition_parts.hpp"
#include "ov_autoplace/spanning_edges.hpp"

namespace ov_autoplace {

// Owns all working memory, so every thread needs its own.
class Isolation {
public:
    // Keeps references; `boundary` tells per edge whether it is cut, and is kept up to date.
    Isolation(const PartitionGraph& graph, std::vector<std::uint8_t>& boundary, SpanningEdges& spanning);

    // `root` is the subgraph of each node, named by its smallest node; `cycle` the cycle of each root, or
    // -1.
    void start(const std::vector<std::int32_t>& root, const std::vector<std::int32_t>& cycle);
    // Cuts off one more node; false when no cycle is left.
    bool cut_next();
    // Puts the subgraphs as they are now into `root`.
    void name_parts(std::vector<std::int32_t>& root);
    // Edges followed since this was last asked.
    std::size_t take_work() { return m_trees.take_work() + m_spanning.take_work(); }

private:
    void collect_parts(const std::vector<std::int32_t>& root, const std::vector<std::int32_t>& cycle);
    void rank_candidates();
    void span_parts();
    std::int32_t take_best();
    void forget(std::int32_t node);
    void enter(std::int32_t node, std::int32_t change);

    void cut_off(std::int32_t node);
    void move_out(const std::vector<std::int32_t>& nodes);
    void retire(std::int32_t part);

    const PartitionGraph& m_graph;
    std::vector<std::uint8_t>& m_boundary;
    SpanningEdges& m_spanning;

    Parts m_parts;
    CycleTrees m_trees;
    std::vector<std::int32_t> m_nodes;  // of all parts, ascending

    // Nodes with inputs to cut, best rank first. Of the rank only its first part changes on the way: whether
    // a boundary enters the node from another subgraph in a cycle.
    std::vector<std::int32_t> m_candidates;
    std::vector<std::int32_t> m_slot;                // per node: in m_candidates, or -1
    std::vector<std::int32_t> m_entries;             // per node: cut inputs from another part in a cycle
    std::vector<std::uint64_t> m_entered;            // bit per candidate: m_entries is not 0
    std::size_t m_next_open = 0;                     // candidates before this one are cut off or forgotten
    std::size_t m_first_entered = 0;                 // words before this one of m_entered are 0
    std::vector<std::int32_t> m_class, m_class_end;  // counting sort

    // Scratch.
    std::vector<std::int32_t> m_cuts, m_name;
};

}  // namespace ov_autoplace
