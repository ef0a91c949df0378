#include <nanobind/nanobind.h>

namespace nb = nanobind;

void init_partition(nb::module_&) {}
