// The part of a graph that decides how HETERO cuts it, prepared once for any number of placements.
#pragma once

#include <cstdint>
#include <vector>

namespace ov_autoplace {

enum class NodeKind : std::uint8_t {
    op,
    parameter,
    constant,
    result,
    group  // several ops with their own constants, and possibly the parameters that they read
};

// The rules of HETERO's partitioning (see partition.hpp), named after what it does with subgraphs that still
// wait for each other in a cycle.
enum class HeteroRules : std::uint8_t {
    refusing,  // it refuses the placement: OpenVINO until 2026.2.1
    isolating  // it cuts off one node after the other: from 2026.3.0
};

// A directed graph whose nodes are in topological order.
struct PartitionGraph {
    PartitionGraph() = default;

    // Tensor t is made by tensor_producer[t] and read by
    // tensor_consumers[tensor_offsets[t] .. tensor_offsets[t + 1]), one entry per input port.
    // Throws std::invalid_argument for arrays that do not fit together or are not in topological order.
    PartitionGraph(std::vector<NodeKind> node_kinds, const std::vector<std::int32_t>& tensor_producer,
                   const std::vector<std::int32_t>& tensor_offsets,
                   const std::vector<std::int32_t>& tensor_consumers, HeteroRules hetero_rules);

    std::int32_t size() const { return static_cast<std::int32_t>(kinds.size()); }
    bool is_graph_input(std::int32_t node) const {
        return kinds[node] == NodeKind::parameter || kinds[node] == NodeKind::constant;
    }

    HeteroRules rules{};
    std::vector<NodeKind> kinds;
    std::vector<std::int32_t> input_offsets;     // CSR over nodes: incoming edges
    std::vector<std::int32_t> input_sources;     // producing node of each edge
    std::vector<std::uint8_t> input_is_private;  // per edge: nobody else reads that tensor
    std::vector<std::int32_t> output_offsets;    // CSR over nodes: outgoing edges
    std::vector<std::int32_t> output_readers;    // reading node of each outgoing edge
    std::vector<std::int32_t> output_edges;      // its index among the incoming edges
    std::vector<std::int32_t> readers;           // per node: input ports that read it, Results not counted
    std::vector<std::uint8_t>
        is_origin;  // per node: dependencies begin here (graph input, group without inputs)
    // Whether two nodes share an origin is asked in rule 2. Most origins are weights with one reader: such a
    // node, or one that depends on nothing else, reaches everything through a single edge (`is_sidestream`),
    // and what it feeds represents it. `is_spring` are the nodes that the others come from: it is enough to
    // know these.
    std::vector<std::uint8_t> is_sidestream, is_spring;
    std::vector<std::uint8_t> is_leaf;  // per node: an op with one reader that reads graph inputs only

private:
    void find_springs();
};

}  // namespace ov_autoplace
