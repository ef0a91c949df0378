// How OpenVINO's HETERO plugin cuts a placed model into subgraphs.
//
// There are two sets of rules. Those of openvino 2026.3.0 and later (HeteroRules::isolating;
// src/plugins/hetero/src/subgraph_collector.cpp) are
//   1. An edge between devices is a boundary; subgraphs are the connected components over the other
//      edges, edges out of constants included. A Result follows its producer.
//   2. Where a subgraph depends on itself through a boundary, edges on the way back in become boundaries
//      too, until nothing changes (FeedbackSplitter).
//   3. While subgraphs still wait for each other in a cycle, one node after the other is cut off from its
//      inputs (Isolation).
//   4. A subgraph of constants only makes no submodel: constants are copied, never transferred.
// In earlier releases (HeteroRules::refusing) rule 2 makes other boundaries (see partition_feedback.hpp), and
// instead of rule 3 HETERO refuses the placement: "Cannot sort subgraphs!". Nobody waits for a constant then.
// HETERO works on the whole model in every round. Here only the cycles of subgraphs that wait for each other
// are looked at, because nothing outside a cycle can change what happens in it, and where a cycle lasts for
// many rounds, only what the last round changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "ov_autoplace/partition_feedback.hpp"
#include "ov_autoplace/partition_graph.hpp"
#include "ov_autoplace/partition_isolation.hpp"
#include "ov_autoplace/spanning_edges.hpp"

namespace ov_autoplace {

// Partitions one graph again and again; owns all working memory, so every thread needs its own.
class Partitioner {
public:
    // Keeps a reference to `graph`.
    explicit Partitioner(const PartitionGraph& graph);

    // Finds the subgraphs for `devices` (a device index per node); returns how many submodels HETERO makes,
    // or `refused`: roots() then has the subgraphs that wait for each other.
    //
    // `hopeless`, where given, is asked as soon as there are cycles, and then every few passes over the
    // graph. It finds subgraphs in roots() that will only be split further; if it says yes, the search ends
    // there with the answer `stopped`.
    std::int32_t partition(const std::int32_t* devices, const std::function<bool()>& hopeless = {});
    static constexpr std::int32_t stopped = -1, refused = -2;

    // Subgraph of each node in the last partition, named by its smallest node.
    const std::vector<std::int32_t>& roots() const { return m_root; }

private:
    // A cycle: subgraphs that wait for each other, or one subgraph with a boundary inside. The first
    // "cycle" of a partition is the whole graph. Its nodes and the edges between them are ranges of m_nodes
    // and m_edges; nodes ascend, edges are ordered by consumer.
    struct Cycle {
        std::size_t nodes_begin = 0, nodes_end = 0;
        std::size_t edges_begin = 0, edges_end = 0;
        std::int32_t id = 0;
        std::int32_t subgraphs = 0;
        std::int32_t rounds = 0;  // of rule 2 that its nodes have been through
    };
    struct Edge {
        std::int32_t source, node;
        std::int32_t index;     // in the graph
        std::int32_t boundary;  // 0 or 1
    };
    void start(const std::int32_t* devices);
    void connect(const Cycle& cycle);
    void find_cycles(const Cycle& within, bool with_loops, std::vector<Cycle>& found);
    bool peel(const Cycle& within);
    void find_strong_components();
    void keep_cycles(const Cycle& within, bool with_loops, std::vector<Cycle>& found);
    void copy_cycles(const Cycle& within, Cycle* cycles, std::size_t count);

    bool split_once(const Cycle& cycle);
    bool split_to_the_end(const Cycle& cycle, const std::function<bool()>& hopeless);
    void name_subgraphs(const Cycle& cycle);
    bool isolate(const std::function<bool()>& hopeless);
    bool is_sortable(const Cycle& cycle);

    bool is_time_to_ask(std::size_t work);
    std::int32_t count_submodels();

    const PartitionGraph& m_graph;
    std::vector<std::int32_t> m_root;      // per node: smallest node of its subgraph
    std::vector<std::uint8_t> m_boundary;  // per edge of the graph
    SpanningEdges m_spanning;
    FeedbackSplitter m_feedback;
    Isolation m_isolation;
    std::vector<std::int32_t> m_nodes;
    std::vector<Edge> m_edges;
    std::vector<Cycle> m_cycles;  // still to be looked at
    std::vector<Cycle> m_found, m_stuck;
    std::int32_t m_next_id = 0;
    std::size_t m_work_until_asked = 0;  // nodes and edges to look at

    // Per subgraph, at the index of its root.
    std::vector<std::int32_t> m_cycle;  // id of the cycle that holds it, or -1
    std::vector<std::int32_t> m_waits;  // boundaries from subgraphs that are not peeled off
    std::vector<std::int32_t> m_out_begin, m_out_end;
    std::vector<std::uint8_t> m_flag;
    std::vector<std::int32_t> m_order, m_low, m_next, m_component;

    // Scratch of the search for cycles.
    std::vector<std::pair<std::int32_t, std::int32_t>> m_crossings;  // boundaries between roots
    std::vector<std::int32_t> m_out_target;
    std::vector<std::int32_t> m_cycle_of;  // per node: id of the cycle that holds it, or -1
    std::vector<std::int32_t> m_roots, m_queue, m_path, m_open, m_component_size;
};

}  // namespace ov_autoplace
