#include "programs.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "answer.hpp"
#include "driver.hpp"
#include "options.hpp"
#include "sources.hpp"
#include "variants.hpp"

namespace virtual_gpu {
namespace {

struct Origin {
    std::string options;
    bool from_binary = false;  // then the options came with it and those of clBuildProgram are not looked at
};

// By handle; a handle that the runtime gives out again is overwritten.
std::unordered_map<cl_program, Origin> origins;
std::mutex origins_mutex;

Origin origin_of(cl_program program) {
    const std::lock_guard<std::mutex> guard(origins_mutex);
    const auto found = origins.find(program);
    return found == origins.end() ? Origin{} : found->second;
}

void remember(cl_program program, const std::string& options, bool from_binary) {
    const std::lock_guard<std::mutex> guard(origins_mutex);
    origins[program] = {options, from_binary};
}

std::string program_text(cl_program program, cl_uint query) {
    std::size_t size = 0;
    if (driver().get_program_info(program, query, 0, nullptr, &size) || size < 2) {
        return {};
    }
    std::string text(size, '\0');
    driver().get_program_info(program, query, size, text.data(), nullptr);
    return text.c_str();  // without the closing zero
}

void report(cl_program program, cl_device_id device, const std::string& options, cl_int error) {
    std::fprintf(stderr, "virtual GPU: build -> %d, options: %s\n", error, options.c_str());
    std::size_t size = 0;
    driver().get_program_build_info(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
    std::string log(size, '\0');
    driver().get_program_build_info(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
    std::fprintf(stderr, "%.3000s\n", log.c_str());
    const std::string& folder = virtual_gpu::options().dump;
    if (!folder.empty()) {
        static std::atomic<int> count{0};
        const std::string name =
            "program_" + std::to_string(getpid()) + "_" + std::to_string(count++) + ".cl";
        std::ofstream(folder + "/" + name) << "// options: " << options << "\n" << program_source(program);
    }
}

// What a program's "binary" starts with. Its rest are the options, a zero, and the source: variants are
// built from the source, so a compiled model that is exported or cached has to keep it.
constexpr char kMagic[] = "ov-autoplace virtual GPU program\n";
constexpr std::size_t kMagicSize = sizeof kMagic - 1;

std::string binary_of(cl_program program, const std::string& source) {
    return std::string(kMagic) + program_options(program) + '\0' + source;
}

}  // namespace

std::string program_source(cl_program program) { return program_text(program, CL_PROGRAM_SOURCE); }

std::string program_options(cl_program program) { return origin_of(program).options; }

cl_device_id program_device(cl_program program) {
    cl_device_id device = nullptr;
    driver().get_program_info(program, CL_PROGRAM_DEVICES, sizeof device, &device, nullptr);
    return device;
}

cl_int build(cl_program program, cl_device_id device, const std::string& options, bool optimised) {
    const std::string real = known_options(options) + (optimised ? "" : "-cl-opt-disable");
    const auto start = std::chrono::steady_clock::now();
    const cl_int error = driver().build_program(program, device ? 1 : 0, device ? &device : nullptr,
                                                real.c_str(), nullptr, nullptr);
    const int debug = virtual_gpu::options().debug;
    if (debug >= 2) {
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        std::fprintf(stderr, "virtual GPU: built in %.2f s: %s: %s\n", seconds.count(), real.c_str(),
                     program_text(program, CL_PROGRAM_KERNEL_NAMES).c_str());
    }
    if (error && debug) {
        report(program, device ? device : program_device(program), real, error);
    }
    return error;
}

}  // namespace virtual_gpu

using namespace virtual_gpu;

VIRTUAL_GPU_EXPORT cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char** parts,
                                                        const std::size_t* lengths, cl_int* error) {
    std::string source;
    for (cl_uint i = 0; i < count; ++i) {
        source += lengths && lengths[i] ? std::string(parts[i], lengths[i]) : std::string(parts[i]);
    }
    source = mended(source, options().optimise == Optimise::kMostly);
    const char* text = source.c_str();
    const cl_program program = driver().create_program_with_source(context, 1, &text, nullptr, error);
    if (program) {
        remember(program, "", false);
    }
    return program;
}

VIRTUAL_GPU_EXPORT cl_program clCreateProgramWithBinary(cl_context context, cl_uint count,
                                                        const cl_device_id* devices,
                                                        const std::size_t* lengths,
                                                        const unsigned char** binaries, cl_int* states,
                                                        cl_int* error) {
    if (count != 1 || lengths[0] <= kMagicSize || std::memcmp(binaries[0], kMagic, kMagicSize) != 0) {
        return driver().create_program_with_binary(context, count, devices, lengths, binaries, states, error);
    }
    const std::string content(reinterpret_cast<const char*>(binaries[0]) + kMagicSize,
                              lengths[0] - kMagicSize);
    const std::string built_with = content.c_str();
    const std::string source = content.substr(built_with.size() + 1);
    const char* text = source.c_str();
    const cl_program program = driver().create_program_with_source(context, 1, &text, nullptr, error);
    if (program) {
        remember(program, built_with, true);
    }
    if (states) {
        states[0] = CL_SUCCESS;
    }
    return program;
}

VIRTUAL_GPU_EXPORT cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id* devices,
                                         const char* given, BuildCallback callback, void* user) {
    Origin origin = origin_of(program);
    if (!origin.from_binary) {
        origin.options = given ? given : "";
        remember(program, origin.options, false);
    }
    const cl_device_id device = count ? devices[0] : nullptr;
    const bool optimise = options().optimise != Optimise::kNever;
    // Kernels that will all run as variants need no good code here, only their attributes.
    const bool sketch = optimise && may_be_turned(program_source(program));
    cl_int error = build(program, device, origin.options, optimise && !sketch);
    if (!error && sketch && !all_kernels_turned(program)) {
        error = build(program, device, origin.options, true);
    }
    if (callback) {
        callback(program, user);
    }
    return error;
}

VIRTUAL_GPU_EXPORT cl_int clGetProgramInfo(cl_program program, cl_uint query, std::size_t room, void* out,
                                           std::size_t* needed) {
    if (query != CL_PROGRAM_BINARIES && query != CL_PROGRAM_BINARY_SIZES) {
        return driver().get_program_info(program, query, room, out, needed);
    }
    const std::string source = program_source(program);
    if (source.empty()) {
        return driver().get_program_info(program, query, room, out, needed);
    }
    const std::string binary = binary_of(program, source);
    if (query == CL_PROGRAM_BINARY_SIZES) {
        const std::size_t size = binary.size();
        return answer(&size, sizeof size, room, out, needed);
    }
    // One pointer per device comes in, to where the bytes shall go.
    if (needed) {
        *needed = sizeof(char*);
    }
    if (out && room >= sizeof(char*) && *static_cast<char**>(out)) {
        std::memcpy(*static_cast<char**>(out), binary.data(), binary.size());
    }
    return CL_SUCCESS;
}
