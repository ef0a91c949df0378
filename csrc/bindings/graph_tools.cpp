#include <nanobind/nanobind.h>

namespace nb = nanobind;

void init_graph_tools(nb::module_&) {}
