#include "ov_autoplace/native_part.hpp"

#include <dlfcn.h>

#include "ov_autoplace/profiler_error.hpp"

namespace ov_autoplace {
namespace {

void* open(const std::string& path) {
    if (void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    throw ProfilerError("a library cannot be loaded: " + std::string(dlerror()));
}

template <typename Function>
void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

NativePart::NativePart(const std::vector<std::string>& libraries) {
    void* library = nullptr;
    for (const std::string& path : libraries) library = open(path);
    if (library == nullptr) throw ProfilerError("no library is given that runs models");
    decltype(&ov_autoplace_interface) interface = nullptr;
    find(library, "ov_autoplace_interface", interface);
    if (interface == nullptr || interface() != OV_AUTOPLACE_INTERFACE) {
        throw ProfilerError(libraries.back() +
                            " belongs to another version of ov-autoplace; install that anew");
    }
    find(library, "ov_autoplace_last_error", last_error);
    find(library, "ov_autoplace_profiler_new", profiler_new);
    find(library, "ov_autoplace_profiler_free", profiler_free);
    find(library, "ov_autoplace_compile", compile);
    find(library, "ov_autoplace_model_free", model_free);
    find(library, "ov_autoplace_facts_of", facts_of);
    find(library, "ov_autoplace_sample", sample);
    find(library, "ov_autoplace_save_outputs", save_outputs);
    find(library, "ov_autoplace_nodes", nodes);
    find(library, "ov_autoplace_lanes_of", lanes_of);
    find(library, "ov_autoplace_request_of", request_of);
    find(library, "ov_autoplace_infer", infer);
    find(library, "ov_autoplace_start", start);
    find(library, "ov_autoplace_wait", wait);
    find(library, "ov_autoplace_on_end", on_end);
    find(library, "ov_autoplace_run_op_by_op", run_op_by_op);
}

void NativePart::check(int status) const {
    if (status != OV_AUTOPLACE_OK) throw ProfilerError(last_error());
}

}  // namespace ov_autoplace
