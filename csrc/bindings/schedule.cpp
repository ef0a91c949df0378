#include "ov_autoplace/schedule.hpp"

#include "arrays.hpp"
#include "cost_arrays.hpp"
#include "node_kinds.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ov_autoplace;
using namespace ov_autoplace::bindings;

namespace {

// A read-only array that keeps the Breakdown alive (the policy of properties).
template <typename T>
NumpyVector<const T> view(const std::vector<T>& values) {
    return NumpyVector<const T>(values.data(), {values.size()});
}

}  // namespace

void init_schedule(nb::module_& m) {
    nb::class_<Breakdown>(m, "Breakdown", "The parts of one placement's simulated latency.")
        .def_ro("latency_seconds", &Breakdown::latency_seconds)
        .def_ro("op_seconds", &Breakdown::op_seconds)
        .def_ro("launch_seconds", &Breakdown::launch_seconds)
        .def_ro("transfer_seconds", &Breakdown::transfer_seconds)
        .def_ro("subgraphs", &Breakdown::subgraphs)
        .def_prop_ro(
            "device_seconds", [](const Breakdown& self) { return view(self.device_seconds); },
            "How long each device is busy, ``float64[D]``.")
        .def_prop_ro(
            "subgraph_of", [](const Breakdown& self) { return view(self.subgraph_of); },
            "Subgraph of each group (of its first op), ``int32[G]``; -1 = it is in no submodel.")
        .def_prop_ro(
            "lane_of", [](const Breakdown& self) { return view(self.lane_of); },
            "Device or lane of each of S subgraphs, ``int32[S]``.")
        .def_prop_ro(
            "start_seconds", [](const Breakdown& self) { return view(self.start_seconds); },
            "When each subgraph is launched, ``float64[S]``.")
        .def_prop_ro(
            "finish_seconds", [](const Breakdown& self) { return view(self.finish_seconds); },
            "When each subgraph has finished, ``float64[S]``.");

    nb::class_<Simulator> simulator(m, "Simulator",
                                    "An immutable copy of a cost table, prepared for simulating placements.");
    simulator.def(
        "__init__",
        [](Simulator* self, const Matrix<double>& op_seconds, const Vector<std::int32_t>& node_group,
           const Vector<std::int32_t>& node_kind, const Vector<std::int32_t>& tensor_producer,
           const Vector<double>& tensor_bytes, const Vector<std::int32_t>& tensor_offsets,
           const Vector<std::int32_t>& tensor_consumers, const Vector<std::int32_t>& bond_first,
           const Vector<std::int32_t>& bond_second, const Matrix<std::int32_t>& links,
           const Matrix<double>& transfer_latency, const Matrix<double>& transfer_seconds_per_byte,
           const Vector<double>& launch_seconds, double mix_seconds, std::int32_t rules, bool rate,
           double corun_factor) {
            CostArrays costs;
            costs.groups = static_cast<std::int32_t>(op_seconds.shape(0));
            costs.devices = static_cast<std::int32_t>(op_seconds.shape(1));
            costs.op_seconds = flat(op_seconds);
            costs.node_group = to_vector(node_group);
            costs.node_kind = node_kinds(node_kind);
            costs.tensor_producer = to_vector(tensor_producer);
            costs.tensor_bytes = to_vector(tensor_bytes);
            costs.tensor_offsets = to_vector(tensor_offsets);
            costs.tensor_consumers = to_vector(tensor_consumers);
            costs.bond_first = to_vector(bond_first);
            costs.bond_second = to_vector(bond_second);
            costs.links = shape_links(links);
            costs.transfer_latency = flat(transfer_latency);
            costs.transfer_seconds_per_byte = flat(transfer_seconds_per_byte);
            costs.launch_seconds = to_vector(launch_seconds);
            costs.mix_seconds = mix_seconds;
            costs.rules = hetero_rules(rules);
            costs.rate = rate;
            costs.corun_factor = corun_factor;
            new (self) Simulator(std::move(costs));
        },
        "op_seconds"_a, "node_group"_a, "node_kind"_a, "tensor_producer"_a, "tensor_bytes"_a,
        "tensor_offsets"_a, "tensor_consumers"_a, "bond_first"_a, "bond_second"_a, "links"_a,
        "transfer_latency"_a, "transfer_seconds_per_byte"_a, "launch_seconds"_a, "mix_seconds"_a, "rules"_a,
        "rate"_a = false, "corun_factor"_a = 1.0,
        "The arrays of a ``CostTable`` and of its ``Wiring``; ``rules`` as in ``PartitionGraph``. With "
        "``rate``, a placement's seconds are those "
        "of its busiest device.\n\n"
        "Raises:\n"
        "    ValueError: The arrays do not fit together, or nodes are not in topological order.");
    const auto check = [](const Simulator& self, const Vector<std::int32_t>& assignment) {
        check_size(assignment.shape(0), static_cast<std::size_t>(self.groups()), "assignment");
    };
    simulator.def_prop_ro("groups", &Simulator::groups)
        .def_prop_ro("devices", &Simulator::devices)
        .def(
            "simulate",
            [check](const Simulator& self, const Vector<std::int32_t>& assignment, double limit_seconds) {
                check(self, assignment);
                nb::gil_scoped_release unlocked;
                return self.simulate(assignment.data(), limit_seconds);
            },
            "assignment"_a, "limit_seconds"_a = Simulator::no_limit,
            "Seconds of one inference when group g runs on device ``assignment[g]`` (``int32[G]``).\n\n"
            "An answer above ``limit_seconds`` may be a lower bound only, found sooner.")
        .def(
            "simulate_batch",
            [](const Simulator& self, const Matrix<std::int32_t>& assignments, std::int32_t threads,
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
            "assignments"_a, "threads"_a = 0, "limit_seconds"_a = Simulator::no_limit,
            "Seconds of each of B assignments (``int32[B, G]``), ``float64[B]``; ``threads`` 0 = one per "
            "core.\n\n"
            "Answers above ``limit_seconds`` may be lower bounds only, found sooner.")
        .def(
            "breakdown",
            [check](const Simulator& self, const Vector<std::int32_t>& assignment) {
                check(self, assignment);
                nb::gil_scoped_release unlocked;
                return self.breakdown(assignment.data());
            },
            "assignment"_a, "The parts of one placement's latency.");
}
