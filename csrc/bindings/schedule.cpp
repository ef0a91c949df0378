#include <nanobind/nanobind.h>

namespace nb = nanobind;

void init_schedule(nb::module_&) {}
