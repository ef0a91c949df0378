// The Python module ov_autoplace._core: one init function per topic, each in its own file.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

void init_schedule(nb::module_& m);
void init_overlap(nb::module_& m);
void init_partition(nb::module_& m);
void init_graph_tools(nb::module_& m);
void init_max_flow(nb::module_& m);
void init_peak_bytes(nb::module_& m);
void init_profiler(nb::module_& m);

NB_MODULE(_core, m) {
    m.doc() =
        "C++ core of ov_autoplace: simulators, HETERO's partition rules, graph helpers, flows, profiler.";
    init_schedule(m);
    init_overlap(m);
    init_partition(m);
    init_graph_tools(m);
    init_max_flow(m);
    init_peak_bytes(m);
    init_profiler(m);
}
