// The arrays of a cost table that both simulators take.
#pragma once

#include <vector>

#include "arrays.hpp"
#include "ov_autoplace/shape_links.hpp"

namespace ov_autoplace::bindings {

inline std::vector<double> flat(const Matrix<double>& array) {
    return std::vector<double>(array.data(), array.data() + array.size());
}

inline std::vector<ShapeLink> shape_links(const Matrix<std::int32_t>& array) {
    check_size(array.shape(1), 3, "a link");
    std::vector<ShapeLink> result;
    for (std::size_t i = 0; i < array.shape(0); ++i) {
        result.push_back(ShapeLink{array(i, 0), array(i, 1), array(i, 2)});
    }
    return result;
}

// The methods by which placements are simulated, on the class of either simulator; `groups` and `devices`
// are the sizes of its table.
template <typename Simulator, typename Class>
void add_simulation(Class& bound) {
    namespace nb = nanobind;
    using namespace nb::literals;
    const auto check = [](const Simulator& self, const Vector<std::int32_t>& assignment) {
        check_size(assignment.shape(0), static_cast<std::size_t>(self.groups()), "assignment");
    };
    bound.def_prop_ro("groups", &Simulator::groups)
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

}  // namespace ov_autoplace::bindings
