#include "ov_autoplace/overlap.hpp"

#include <nanobind/stl/optional.h>

#include <optional>

#include "arrays.hpp"
#include "cost_arrays.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ov_autoplace;
using namespace ov_autoplace::bindings;

namespace {

// What a lane takes first: one number per group, or nothing.
using Priority = std::optional<Vector<double>>;

template <typename Array>
const double* data_of(const std::optional<Array>& array) {
    return array ? array->data() : nullptr;
}

}  // namespace

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
    const auto check = [](const OverlapSimulator& self, const Vector<std::int32_t>& assignment,
                          const Priority& priority) {
        const auto groups = static_cast<std::size_t>(self.groups());
        check_size(assignment.shape(0), groups, "assignment");
        if (priority) check_size(priority->shape(0), groups, "priority");
    };
    simulator.def_prop_ro("groups", &OverlapSimulator::groups)
        .def_prop_ro("devices", &OverlapSimulator::devices)
        .def(
            "simulate",
            [check](const OverlapSimulator& self, const Vector<std::int32_t>& assignment,
                    double limit_seconds, const Priority& priority) {
                check(self, assignment, priority);
                nb::gil_scoped_release unlocked;
                return self.simulate(assignment.data(), limit_seconds, data_of(priority));
            },
            "assignment"_a, "limit_seconds"_a = OverlapSimulator::no_limit, "priority"_a = nb::none(),
            "Seconds of one inference when group g runs on lane ``assignment[g]`` (``int32[G]``).\n\n"
            "A lane takes what has the highest ``priority`` (``float64[G]``; None = the longest way to the "
            "end).\n"
            "An answer above ``limit_seconds`` may be a lower bound only, found sooner.")
        .def(
            "simulate_batch",
            [](const OverlapSimulator& self, const Matrix<std::int32_t>& assignments, std::int32_t threads,
               double limit_seconds, const std::optional<Matrix<double>>& priorities) {
                check_size(assignments.shape(1), static_cast<std::size_t>(self.groups()),
                           "a row of assignments");
                const bool one_for_all = priorities && priorities->shape(0) == 1;
                if (priorities) {
                    check_size(priorities->shape(1), assignments.shape(1), "a row of priorities");
                    if (!one_for_all) check_size(priorities->shape(0), assignments.shape(0), "priorities");
                }
                std::vector<double> latencies(assignments.shape(0));
                {
                    nb::gil_scoped_release unlocked;
                    self.simulate_batch(assignments.data(), latencies.size(), threads, latencies.data(),
                                        limit_seconds, data_of(priorities), one_for_all);
                }
                return to_numpy(std::move(latencies));
            },
            "assignments"_a, "threads"_a = 0, "limit_seconds"_a = OverlapSimulator::no_limit,
            "priorities"_a = nb::none(),
            "Seconds of each of B assignments (``int32[B, G]``), ``float64[B]``; ``threads`` 0 = one per "
            "core.\n\n"
            "``priorities`` are ``float64[B, G]``, or ``float64[1, G]`` for all of them.\n"
            "Answers above ``limit_seconds`` may be lower bounds only, found sooner.")
        .def(
            "breakdown",
            [check](const OverlapSimulator& self, const Vector<std::int32_t>& assignment,
                    const Priority& priority) {
                check(self, assignment, priority);
                nb::gil_scoped_release unlocked;
                return self.breakdown(assignment.data(), data_of(priority));
            },
            "assignment"_a, "priority"_a = nb::none(), "The parts of one placement's latency.");
}
