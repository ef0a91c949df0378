#include "cached.hpp"

#include <dlfcn.h>
#include <execinfo.h>

#include <array>
#include <openvino/core/except.hpp>
#include <string>
#include <string_view>

#include "log.hpp"

namespace ov_autoplace {
namespace {

// Of all that is known of an op, OpenVINO writes texts of this kind alone.
const std::string signature_key = "user_data:autoplace_compiled";

// OpenVINO does not tell for whom it reads a model. But HETERO reads one only to import a part that it
// exported, because a model that is to be compiled has been read before it gets there; and ov::Core imports
// while it compiles only where it has a cache. Where a call cannot be told, nothing is refused.
bool reads_from_cache() {
    std::array<void*, 128> calls;
    const int count = backtrace(calls.data(), static_cast<int>(calls.size()));
    bool hetero = false, compiles = false;
    for (int i = 0; i < count; ++i) {
        Dl_info call;
        if (dladdr(calls[i], &call) == 0) continue;
        const std::string_view library = call.dli_fname ? call.dli_fname : "";
        const std::string_view function = call.dli_sname ? call.dli_sname : "";
        hetero |= library.find("openvino_hetero_plugin") != std::string_view::npos;
        compiles |= function.find("ov4Core13compile_model") != std::string_view::npos;
    }
    return hetero && compiles;
}

}  // namespace

void sign(ov::Node& op) {
    auto& marks = op.get_rt_info();
    if (marks.count(signature_key) == 0) marks[signature_key] = std::string("1");
}

void refuse_unsigned_from_cache(const ov::Node& op) {
    if (op.get_rt_info().count(signature_key) != 0 || !reads_from_cache()) return;
    warn("the cache has this model from a program without this library; it is compiled anew");
    OPENVINO_THROW("compiled without the extension of ov-autoplace");
}

}  // namespace ov_autoplace
