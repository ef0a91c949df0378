// The library that is built for one release of OpenVINO, opened at run time: the core itself knows no
// OpenVINO.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "native/profiler/profiler_api.h"

namespace ov_autoplace {

// Its functions, see profiler_api.h. It stays loaded until the process ends.
struct NativePart {
    // Opens libraries in their order, of which the last one is this part and the others are what it needs:
    // with OpenVINO's own first, nobody looks for that in any path. Throws ProfilerError where one cannot be
    // opened or has other functions than this core knows.
    explicit NativePart(const std::vector<std::string>& libraries);

    decltype(&ov_autoplace_last_error) last_error = nullptr;
    decltype(&ov_autoplace_profiler_new) profiler_new = nullptr;
    decltype(&ov_autoplace_profiler_free) profiler_free = nullptr;
    decltype(&ov_autoplace_compile) compile = nullptr;
    decltype(&ov_autoplace_model_free) model_free = nullptr;
    decltype(&ov_autoplace_facts_of) facts_of = nullptr;
    decltype(&ov_autoplace_sample) sample = nullptr;
    decltype(&ov_autoplace_save_outputs) save_outputs = nullptr;
    decltype(&ov_autoplace_nodes) nodes = nullptr;
    decltype(&ov_autoplace_lanes_of) lanes_of = nullptr;
    decltype(&ov_autoplace_request_of) request_of = nullptr;
    decltype(&ov_autoplace_infer) infer = nullptr;
    decltype(&ov_autoplace_start) start = nullptr;
    decltype(&ov_autoplace_wait) wait = nullptr;
    decltype(&ov_autoplace_on_end) on_end = nullptr;
    decltype(&ov_autoplace_run_op_by_op) run_op_by_op = nullptr;

    // Throws ProfilerError where a function says that it failed.
    void check(int status) const;
};

}  // namespace ov_autoplace
