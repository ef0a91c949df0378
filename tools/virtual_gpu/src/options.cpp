#include "options.hpp"

#include <cstdio>
#include <cstdlib>

namespace virtual_gpu {
namespace {

std::string variable(const char* name, const std::string& otherwise) {
    const char* value = std::getenv(name);
    return value && *value ? value : otherwise;
}

int number(const char* name, int otherwise) {
    const char* value = std::getenv(name);
    return value && *value ? std::atoi(value) : otherwise;
}

Optimise optimisation() {
    const std::string value = variable("VIRTUAL_GPU_OPTIMISE", "mostly");
    if (value == "never") {
        return Optimise::kNever;
    }
    if (value == "always") {
        return Optimise::kAlways;
    }
    if (value != "mostly") {
        std::fprintf(stderr, "virtual GPU: VIRTUAL_GPU_OPTIMISE=%s is none of never, mostly, always\n",
                     value.c_str());
    }
    return Optimise::kMostly;
}

// "1002:16,4251:0x1912": the query in hexadecimal, its answer in any base.
std::map<cl_uint, cl_ulong> answers() {
    std::map<cl_uint, cl_ulong> result;
    const std::string text = variable("VIRTUAL_GPU_SET", "");
    const char* at = text.c_str();
    while (*at) {
        char* end = nullptr;
        const auto query = static_cast<cl_uint>(std::strtoul(at, &end, 16));
        if (end == at || *end != ':') {
            std::fprintf(stderr, "virtual GPU: VIRTUAL_GPU_SET stops making sense at '%s'\n", at);
            break;
        }
        result[query] = std::strtoull(end + 1, &end, 0);
        at = *end == ',' ? end + 1 : end;
    }
    return result;
}

Options read() {
    Options result;
    result.driver = variable("VIRTUAL_GPU_DRIVER", result.driver);
    result.name = variable("VIRTUAL_GPU_NAME", result.name);
    result.optimise = optimisation();
    result.half = number("VIRTUAL_GPU_FP16", 1) != 0;
    result.debug = number("VIRTUAL_GPU_DEBUG", 0);
    result.dump = variable("VIRTUAL_GPU_DUMP", "");
    result.cache = variable("VIRTUAL_GPU_CACHE", "");
    result.paced = variable("VIRTUAL_GPU_PACED", "");
    result.answers = answers();
    return result;
}

}  // namespace

const Options& options() {
    static const Options result = read();
    return result;
}

}  // namespace virtual_gpu
