#include "ov_autoplace/overlap.hpp"

#include "arrays.hpp"
#include "cost_arrays.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ov_autoplace;
using namespace ov_autoplace::bindings;

void init_overlap(nb::module_& m) {
    nb::class_<OverlapSimulator> simulator(
        m, "OverlapSimulator",
        "An immutable copy of a cost table, prepared for simulating placements on lanes that work at once.");
    simulator.def(
        "__init__",
        [](OverlapSimulator* self, const Matrix<double>& op_seconds, const Vector<std::int32_t>& piece_of,
           const Vector<std::uint8_t>& runs, const Vector<std::int32_t>& tensor_producer,
           const Vector<double>& tensor_bytes, const Vector<std::int32_t>& tensor_offsets,
           const Vector<std::int32_t>& tensor_consumers, const Vector<std::int32_t>& node_group,
           const Matrix<std::int32_t>& links, const Matrix<double>& transfer_latency,
           const Matrix<double>& transfer_seconds_per_byte, const Vector<double>& launch_seconds,
           const Vector<std::int32_t>& lane_device, double mix_seconds, double corun_factor) {
            check_size(piece_of.shape(0), op_seconds.shape(0), "piece_of");
            LaneCosts costs;
            costs.group_seconds = flat(op_seconds);
            costs.piece_of = to_vector(piece_of);
            costs.pieces.pieces = static_cast<std::int32_t>(runs.shape(0));
            costs.pieces.lanes = static_cast<std::int32_t>(op_seconds.shape(1));
            costs.pieces.runs = to_vector(runs);
            costs.pieces.tensor_producer = to_vector(tensor_producer);
            costs.pieces.tensor_bytes = to_vector(tensor_bytes);
            costs.pieces.tensor_offsets = to_vector(tensor_offsets);
            costs.pieces.tensor_consumers = to_vector(tensor_consumers);
            costs.pieces.transfer_latency = flat(transfer_latency);
            costs.pieces.transfer_seconds_per_byte = flat(transfer_seconds_per_byte);
            costs.pieces.launch_seconds = to_vector(launch_seconds);
            costs.lane_device = to_vector(lane_device);
            costs.mix_seconds = mix_seconds;
            costs.corun_factor = corun_factor;
            costs.node_group = to_vector(node_group);
            costs.links = shape_links(links);
            new (self) OverlapSimulator(std::move(costs));
        },
        "op_seconds"_a, "piece_of"_a, "runs"_a, "tensor_producer"_a, "tensor_bytes"_a, "tensor_offsets"_a,
        "tensor_consumers"_a, "node_group"_a, "links"_a, "transfer_latency"_a, "transfer_seconds_per_byte"_a,
        "launch_seconds"_a, "lane_device"_a, "mix_seconds"_a, "corun_factor"_a,
        "The arrays of a ``CostTable``, and of its ``SubmodelParts``.\n\n"
        "Raises:\n"
        "    ValueError: The arrays do not fit together, or pieces are not in topological order.");
    add_simulation<OverlapSimulator>(simulator);
}
