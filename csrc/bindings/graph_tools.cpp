#include "ov_autoplace/graph_tools.hpp"

#include "arrays.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ov_autoplace;
using namespace ov_autoplace::bindings;

namespace {

using Edges = nb::ndarray<const std::int32_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

EdgeList edge_list(const Edges& edges) { return {edges.data(), edges.shape(0)}; }

}  // namespace

void init_graph_tools(nb::module_& m) {
    m.def(
        "connected_labels",
        [](std::int32_t n, const Edges& pairs) {
            std::vector<std::int32_t> labels;
            {
                nb::gil_scoped_release unlocked;
                labels = connected_labels(n, edge_list(pairs));
            }
            return to_numpy(std::move(labels));
        },
        "n"_a, "pairs"_a,
        "Dense set number of each of n nodes, ``int32[n]``, after joining ``pairs`` (``int32[K, 2]``).\n\n"
        "Sets are numbered in order of first appearance.");
    m.def(
        "merge_cycles",
        [](const Vector<std::int32_t>& labels, const Edges& edges) {
            std::vector<std::int32_t> merged = to_vector(labels);
            {
                nb::gil_scoped_release unlocked;
                merged = merge_cycles(merged, edge_list(edges));
            }
            return to_numpy(std::move(merged));
        },
        "labels"_a, "edges"_a,
        "Joins classes of nodes until the graph contracted by ``labels`` (``int32[n]``) has no cycle.\n\n"
        "The result, ``int32[n]``, is dense and numbers the classes in a topological order of the "
        "contracted\n"
        "graph, ties broken by the smallest member. ``edges`` is ``int32[K, 2]``.");
}
