#include "ov_autoplace/partition_graph.hpp"

#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

namespace ov_autoplace {
namespace {

void check(std::size_t kinds, const std::vector<std::int32_t>& producer,
           const std::vector<std::int32_t>& offsets, const std::vector<std::int32_t>& consumers) {
    constexpr std::size_t most = std::numeric_limits<std::int32_t>::max();
    if (kinds >= most || producer.size() >= most || consumers.size() >= most) {
        throw std::invalid_argument("a graph has at most 2^31 - 2 nodes, tensors and edges");
    }
    const auto nodes = static_cast<std::int32_t>(kinds);
    const auto tensors = static_cast<std::int32_t>(producer.size());
    const auto edges = static_cast<std::int32_t>(consumers.size());
    if (static_cast<std::int32_t>(offsets.size()) != tensors + 1 || offsets.front() != 0 ||
        offsets.back() != edges) {
        throw std::invalid_argument("tensor_offsets must rise from 0 to the number of consumers in " +
                                    std::to_string(tensors + 1) + " entries");
    }
    for (std::int32_t t = 0; t < tensors; ++t) {
        if (offsets[t] > offsets[t + 1]) throw std::invalid_argument("tensor_offsets must not fall");
        if (producer[t] < 0 || producer[t] >= nodes) {
            throw std::invalid_argument("tensor " + std::to_string(t) + " is made by node " +
                                        std::to_string(producer[t]) + "; the graph has " +
                                        std::to_string(nodes));
        }
    }
    for (std::int32_t t = 0; t < tensors; ++t) {
        for (std::int32_t e = offsets[t]; e < offsets[t + 1]; ++e) {
            if (consumers[e] <= producer[t] || consumers[e] >= nodes) {
                throw std::invalid_argument(
                    "tensor " + std::to_string(t) + " goes from node " + std::to_string(producer[t]) +
                    " to node " + std::to_string(consumers[e]) + "; nodes must be in topological order");
            }
        }
    }
}

}  // namespace

PartitionGraph::PartitionGraph(std::vector<NodeKind> node_kinds,
                               const std::vector<std::int32_t>& tensor_producer,
                               const std::vector<std::int32_t>& tensor_offsets,
                               const std::vector<std::int32_t>& tensor_consumers, HeteroRules hetero_rules)
    : rules(hetero_rules),
      kinds(std::move(node_kinds)),
      input_offsets(kinds.size() + 1),
      input_sources(tensor_consumers.size()),
      input_is_private(tensor_consumers.size()),
      output_offsets(kinds.size() + 1),
      output_readers(tensor_consumers.size()),
      output_edges(tensor_consumers.size()),
      readers(kinds.size()),
      is_origin(kinds.size()),
      is_sidestream(kinds.size()),
      is_spring(kinds.size()),
      is_leaf(kinds.size()) {
    check(kinds.size(), tensor_producer, tensor_offsets, tensor_consumers);
    for (const std::int32_t consumer : tensor_consumers) ++input_offsets[consumer + 1];
    std::partial_sum(input_offsets.begin(), input_offsets.end(), input_offsets.begin());
    std::vector<std::int32_t> next(input_offsets.begin(), input_offsets.end() - 1);
    for (std::size_t t = 0; t < tensor_producer.size(); ++t) {
        for (std::int32_t e = tensor_offsets[t]; e < tensor_offsets[t + 1]; ++e) {
            const std::int32_t edge = next[tensor_consumers[e]]++;
            input_sources[edge] = tensor_producer[t];
            input_is_private[edge] = tensor_offsets[t + 1] - tensor_offsets[t] == 1;
            if (kinds[tensor_consumers[e]] != NodeKind::result) ++readers[tensor_producer[t]];
        }
    }
    for (const std::int32_t source : input_sources) ++output_offsets[source + 1];
    std::partial_sum(output_offsets.begin(), output_offsets.end(), output_offsets.begin());
    next.assign(output_offsets.begin(), output_offsets.end() - 1);
    for (std::int32_t node = 0; node < size(); ++node) {
        for (std::int32_t e = input_offsets[node]; e < input_offsets[node + 1]; ++e) {
            const std::int32_t output = next[input_sources[e]]++;
            output_readers[output] = node;
            output_edges[output] = e;
        }
    }
    for (std::int32_t node = 0; node < size(); ++node) {
        const bool has_inputs = input_offsets[node] != input_offsets[node + 1];
        is_origin[node] = is_graph_input(node) || (kinds[node] == NodeKind::group && !has_inputs);
        is_leaf[node] = !is_graph_input(node) && readers[node] == 1;
        for (std::int32_t e = input_offsets[node]; e < input_offsets[node + 1]; ++e) {
            is_leaf[node] = is_leaf[node] && is_graph_input(input_sources[e]);
        }
    }
    find_springs();
}

// For any node that is no sidestream: one of the springs at or above it reaches another node by a way of some
// kind exactly if one of the origins above it does.
void PartitionGraph::find_springs() {
    std::vector<std::uint8_t> has_origin(kinds.size());
    for (std::int32_t node = 0; node < size(); ++node) {
        bool joins_stream = false;
        has_origin[node] = is_origin[node];
        for (std::int32_t e = input_offsets[node]; e < input_offsets[node + 1]; ++e) {
            const std::int32_t source = input_sources[e];
            has_origin[node] |= has_origin[source];
            joins_stream = joins_stream || (has_origin[source] && !is_sidestream[source]);
        }
        if (!has_origin[node] || joins_stream) continue;
        const bool has_one_reader = output_offsets[node + 1] - output_offsets[node] == 1;
        (has_one_reader ? is_sidestream : is_spring)[node] = 1;
    }
}

}  // namespace ov_autoplace
