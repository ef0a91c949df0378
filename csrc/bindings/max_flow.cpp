#include "ov_autoplace/max_flow.hpp"

#include <nanobind/stl/tuple.h>

#include "arrays.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ov_autoplace;
using namespace ov_autoplace::bindings;

void init_max_flow(nb::module_& m) {
    m.def(
        "minimum_cut",
        [](std::int32_t nodes, std::int32_t source, std::int32_t sink, const Vector<std::int32_t>& tail,
           const Vector<std::int32_t>& head, const Vector<std::int64_t>& forward,
           const Vector<std::int64_t>& backward) {
            const std::size_t arcs = tail.shape(0);
            check_size(head.shape(0), arcs, "head");
            check_size(forward.shape(0), arcs, "forward");
            check_size(backward.shape(0), arcs, "backward");
            MinimumCut cut;
            {
                nb::gil_scoped_release unlocked;
                cut = minimum_cut(
                    {nodes, source, sink, arcs, tail.data(), head.data(), forward.data(), backward.data()});
            }
            return std::tuple(cut.flow, to_numpy(std::move(cut.smallest)), to_numpy(std::move(cut.largest)));
        },
        "nodes"_a, "source"_a, "sink"_a, "tail"_a, "head"_a, "forward"_a, "backward"_a,
        "Minimum cuts of a network whose K arcs let ``forward`` units pass from tail to head, ``backward`` "
        "back.\n\n"
        "Returns the maximum flow and, per node, whether it is on the source side of the cut with the\n"
        "smallest source side, and of the one with the largest (both ``uint8[nodes]``).");
}
