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
    const auto check = [](const OverlapSimulator& self, const Vector<std::int32_t>& assignment) {
        check_size(assignment.shape(0), static_cast<std::size_t>(self.groups()), "assignment");
    };
    simulator.def_prop_ro("groups", &OverlapSimulator::groups)
        .def_prop_ro("devices", &OverlapSimulator::devices)
        .def(
            "simulate",
            [check](const OverlapSimulator& self, const Vector<std::int32_t>& assignment,
                    double limit_seconds) {
                check(self, assignment);
                nb::gil_scoped_release unlocked;
                return self.simulate(assignment.data(), limit_seconds);
            },
            "assignment"_a, "limit_seconds"_a = OverlapSimulator::no_limit,
            "Seconds of one inference when group g runs on lane ``assignment[g]`` (``int32[G]``).\n\n"
            "An answer above ``limit_seconds`` may be a lower bound only, found sooner.")
        .def(
            "simulate_batch",
            [](const OverlapSimulator& self, const Matrix<std::int32_t>& assignments, std::int32_t threads,
               double limit_seconds) {
                check_size(assignments.shape(1), static_cast<std::size_t>(self.groups()),
                           "a row of assignments");
                std::vector<double> latencies(assignments.shape(0));
                {
                    nb::gil_scoped_release unlocked;
                    self.simulate_batch(assignments.data(), latencies.size(), threads, latencies.data(),
                                        limit_seconds);
                }
                return to_numpy(std::move(latencies));
            },
            "assignments"_a, "threads"_a = 0, "limit_seconds"_a = OverlapSimulator::no_limit,
            "Seconds of each of B assignments (``int32[B, G]``), ``float64[B]``; ``threads`` 0 = one per "
            "core.\n\n"
            "Answers above ``limit_seconds`` may be lower bounds only, found sooner.")
        .def(
            "breakdown",
            [check](const OverlapSimulator& self, const Vector<std::int32_t>& assignment) {
                check(self, assignment);
                nb::gil_scoped_release unlocked;
                return self.breakdown(assignment.data());
            },
            "assignment"_a, "The parts of one placement's latency.");
}
