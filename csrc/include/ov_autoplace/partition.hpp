// How OpenVINO's HETERO plugin cuts a placed model into subgraphs.
//
// The rules are those of openvino 2026.4.1 (src/plugins/hetero/src/subgraph_collector.cpp):
//   1. An edge between devices is a boundary; subgraphs are the connected components over the other
//      edges, edges out of constants included. A Result follows its producer.
//   2. Where a subgraph depends on itself through a boundary, edges on the way back in become boundaries
//      too, until nothing changes (split_feedback).
//   3. While subgraphs still wait for each other in a circle, one node after the other is cut off from its
//      inputs (isolate_nodes).
//   4. A subgraph of constants only makes no submodel: constants are copied, never handed over.
// HETERO works on the whole model in every round. Here a round looks only at the circles of subgraphs that
// wait for each other, because nothing outside a circle can change what happens in it.
#pragma once

#include <cstdint>
#include <vector>

#include "ov_autoplace/partition_graph.hpp"

namespace ov_autoplace {

// Partitions one graph again and again; owns all working memory, so every thread needs its own.
class Partitioner {
public:
    // Keeps a reference to `graph`.
    explicit Partitioner(const PartitionGraph& graph);

    // Finds the subgraphs for `devices` (a device index per node); returns how many submodels HETERO makes.
    std::int32_t partition(const std::int32_t* devices);

    // Subgraph of each node in the last partition, named by its smallest node.
    const std::vector<std::int32_t>& roots() const { return m_root; }

private:
    // A circle: nodes (ascending, in m_arena) of subgraphs that wait for each other, or of one subgraph
    // with a boundary inside. The first "circle" of a partition is the whole graph.
    struct Circle {
        std::size_t begin = 0;
        std::size_t end = 0;
        std::int32_t id = 0;
        std::int32_t subgraphs = 0;
    };
    // How boundaries enter a node's subgraph at the node or above it.
    enum class Entry : std::uint8_t { none, from_graph_inputs, from_ops };

    void connect(const Circle& circle);
    void find_circles(const Circle& within, bool with_loops, std::vector<Circle>& found);
    bool peel(const Circle& within);
    void find_strong_components();
    void keep_circles(const Circle& within, bool with_loops, std::vector<Circle>& found);

    bool split_feedback(const Circle& circle);
    template <int Words>
    void mark_feedback(const Circle& circle);
    void mark_entries(const Circle& circle);
    void find_shared_origins(const Circle& circle);
    void propagate_origins(const Circle& circle, std::int32_t first_bit);

    void isolate_nodes(std::vector<Circle>& circles);
    std::uint64_t isolation_rank(std::int32_t node) const;
    std::int32_t count_submodels();

    const PartitionGraph& m_graph;
    std::vector<std::uint8_t> m_boundary;  // per edge
    std::vector<std::int32_t> m_root;      // per node: smallest node of its subgraph
    std::vector<std::int32_t> m_arena;     // node lists of the circles
    std::vector<Circle> m_work, m_found, m_stuck;
    std::int32_t m_next_id = 0;

    // Per subgraph, at the index of its root.
    std::vector<std::int32_t> m_circle;  // id of the circle that holds it, or -1
    std::vector<std::int32_t> m_waits;   // boundary edges from subgraphs that are not peeled off
    std::vector<std::int32_t> m_out_begin, m_out_end;
    std::vector<std::int32_t> m_bit;
    std::vector<std::uint8_t> m_flag;
    std::vector<std::int32_t> m_order, m_low, m_group;
    std::vector<std::int32_t> m_out_target;  // per boundary edge: root of the receiving subgraph
    std::vector<std::int32_t> m_roots, m_queue, m_path, m_open;
    std::vector<std::int32_t> m_group_size;

    // Per node, valid inside the circle being split.
    std::vector<std::int32_t> m_row;
    std::vector<std::uint8_t> m_fed_back;  // depends on its own subgraph through a boundary
    std::vector<Entry> m_entry;
    std::vector<std::uint64_t> m_bits, m_marked_bits;
    struct Candidate {
        std::int32_t edge, head;
    };
    std::vector<Candidate> m_candidates;
    std::vector<std::int32_t> m_cuts;  // edges
};

}  // namespace ov_autoplace
