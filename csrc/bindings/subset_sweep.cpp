#include "ov_autoplace/subset_sweep.hpp"

#include <nanobind/stl/tuple.h>

#include <algorithm>

#include "arrays.hpp"
#include "ov_autoplace/piece_sweep.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ov_autoplace;
using namespace ov_autoplace::bindings;

namespace {

StarsView stars_of(std::int32_t nodes, const Vector<std::int32_t>& head, const Vector<std::int32_t>& offsets,
                   const Vector<std::int32_t>& members) {
    check_size(offsets.shape(0), head.shape(0) + 1, "offsets");
    const auto* ends = offsets.data() + offsets.shape(0);
    if (nodes < 0 || offsets.data()[0] != 0 || !std::is_sorted(offsets.data(), ends))
        throw nb::value_error("there are fewer than 0 nodes, or offsets do not ascend from 0");
    check_size(members.shape(0), static_cast<std::size_t>(ends[-1]), "members");
    return {nodes, head.shape(0), head.data(), offsets.data(), members.data()};
}

template <class Sweep, class Limit>
nb::class_<Sweep> sweep_class(nb::module_& m, const char* name, const char* description) {
    return nb::class_<Sweep>(m, name, description)
        .def(
            "__init__",
            [](Sweep* self, std::int32_t nodes, const Vector<std::int32_t>& head,
               const Vector<std::int32_t>& offsets, const Vector<std::int32_t>& members,
               Limit most_states) { new (self) Sweep(stars_of(nodes, head, offsets, members), most_states); },
            "nodes"_a, "head"_a, "offsets"_a, "members"_a, "most_states"_a)
        .def_prop_ro("is_narrow", &Sweep::is_narrow, "Whether there are no more than ``most_states``.");
}

}  // namespace

void init_subset_sweep(nb::module_& m) {
    sweep_class<SubsetSweep, std::int32_t>(
        m, "SubsetSweep",
        "Cheapest subsets of nodes within a weight limit, where splitting a star (a head and its members) "
        "costs something; by dynamic programming along the nodes, with ``most_states`` at each.")
        .def(
            "cheapest",
            [](const SubsetSweep& self, const Vector<double>& price, const Vector<double>& weight,
               double capacity, const Vector<double>& leaving, const Vector<double>& entering,
               std::int32_t most_labels) {
                const auto nodes = static_cast<std::size_t>(self.nodes());
                check_size(price.shape(0), nodes, "price");
                check_size(weight.shape(0), nodes, "weight");
                check_size(leaving.shape(0), self.stars(), "leaving");
                check_size(entering.shape(0), self.stars(), "entering");
                Subset subset;
                {
                    nb::gil_scoped_release unlocked;
                    subset = self.cheapest(
                        {price.data(), weight.data(), capacity, leaving.data(), entering.data()},
                        most_labels);
                }
                return std::tuple(subset.lower_bound, to_numpy(std::move(subset.chosen)));
            },
            "price"_a, "weight"_a, "capacity"_a, "leaving"_a, "entering"_a, "most_labels"_a,
            "A lower bound of all subsets' costs (the empty one costs nothing), and a subset that costs no\n"
            "more, ``uint8[nodes]``; it may be too heavy where ``most_labels`` per step did not suffice.");

    sweep_class<PieceSweep, std::int64_t>(
        m, "PieceSweep",
        "Cheapest sets of nodes for one device, where the subgraphs that HETERO makes of a set cost "
        "something; by dynamic programming along the nodes, with ``most_states`` in all.")
        .def(
            "cheapest",
            [](const PieceSweep& self, const Matrix<double>& price, const Matrix<double>& leaving,
               const Matrix<double>& entering, const Matrix<double>& returning,
               const Vector<double>& launch) {
                const std::size_t devices = launch.shape(0), nodes = static_cast<std::size_t>(self.nodes());
                check_size(price.shape(0), nodes, "price");
                for (const auto* stars : {&leaving, &entering, &returning})
                    check_size(stars->shape(0), self.stars(), "an array of stars");
                for (const auto* rows : {&price, &leaving, &entering, &returning})
                    check_size(rows->shape(1), devices, "a row");
                std::vector<double> bounds;
                std::vector<std::uint8_t> chosen;
                {
                    nb::gil_scoped_release unlocked;
                    for (const Subset& subset :
                         self.cheapest({devices, price.data(), leaving.data(), entering.data(),
                                        returning.data(), launch.data()})) {
                        bounds.push_back(subset.lower_bound);
                        chosen.insert(chosen.end(), subset.chosen.begin(), subset.chosen.end());
                    }
                }
                return std::tuple(to_numpy(std::move(bounds)), to_numpy(std::move(chosen)));
            },
            "price"_a, "leaving"_a, "entering"_a, "returning"_a, "launch"_a,
            "Of each of D devices a lower bound of what the subgraphs of any set cost (none cost nothing),\n"
            "``float64[D]``, and the set that attains it, ``uint8[D * nodes]``. All prices are\n"
            "``float64[..., D]``.");
}
