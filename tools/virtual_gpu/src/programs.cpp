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
#include "cache.hpp"
#include "driver.hpp"
#include "options.hpp"
#include "pace.hpp"
#include "sources.hpp"
#include "variants.hpp"

namespace virtual_gpu {
namespace {

struct Origin {
    std::string options;
    bool from_binary = false;  // then the options came with it and those of clBuildProgram are not looked at
    std::string source;        // of a program from the cache; of others the runtime knows it
    cl_program stand_in = nullptr;  // from the cache: its kernels run instead of this program's
};

// Never destroyed: the plugin releases programs while the process ends.
std::unordered_map<cl_program, Origin>& origins = *new std::unordered_map<cl_program, Origin>;  // by handle
std::mutex& origins_mutex = *new std::mutex;

Origin origin_of(cl_program program) {
    const std::lock_guard<std::mutex> guard(origins_mutex);
    const auto found = origins.find(program);
    return found == origins.end() ? Origin{} : found->second;
}

void remember(cl_program program, Origin origin) {
    const std::lock_guard<std::mutex> guard(origins_mutex);
    origins[program] = std::move(origin);
}

void set_options(cl_program program, const std::string& options) {
    const std::lock_guard<std::mutex> guard(origins_mutex);
    origins[program].options = options;
}

// Takes the reference to `stand_in`, which may be null.
void set_stand_in(cl_program program, cl_program stand_in) {
    cl_program before = stand_in;
    {
        const std::lock_guard<std::mutex> guard(origins_mutex);
        std::swap(origins[program].stand_in, before);
    }
    if (before) {
        release(before);
    }
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

std::string device_text(cl_device_id device, cl_uint query) {
    char text[256] = "";
    driver().get_device_info(device, query, sizeof text, text, nullptr);
    return text;
}

CacheEntry cache_entry(cl_program program, cl_device_id device, const std::string& real_options) {
    const std::string& folder = options().cache;
    if (folder.empty()) {
        return {folder, ""};
    }
    const std::string built_by =
        device_text(device, CL_DRIVER_VERSION) + "\n" + device_text(device, CL_DEVICE_NAME);
    return {folder, built_by + "\n" + real_options + "\n" + program_source(program)};
}

// What the runtime itself calls the binary of a program that it built for one device.
std::string built_binary(cl_program program) {
    std::size_t size = 0;
    if (driver().get_program_info(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr)) {
        return {};
    }
    std::string binary(size, '\0');
    char* start = binary.data();
    const cl_int error =
        driver().get_program_info(program, CL_PROGRAM_BINARIES, sizeof start, &start, nullptr);
    return error ? std::string() : binary;
}

// A program from the runtime's own binary, or null when the runtime does not take it.
cl_program from_built_binary(cl_program like, cl_device_id device, const std::string& binary,
                             const std::string& real_options) {
    cl_context context = nullptr;
    driver().get_program_info(like, CL_PROGRAM_CONTEXT, sizeof context, &context, nullptr);
    const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
    const std::size_t size = binary.size();
    cl_int error = CL_SUCCESS;
    const cl_program program =
        driver().create_program_with_binary(context, 1, &device, &size, &bytes, nullptr, &error);
    if (!error && driver().build_program(program, 1, &device, real_options.c_str(), nullptr, nullptr)) {
        driver().release_program(program);
        return nullptr;
    }
    return error ? nullptr : program;
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

std::string program_source(cl_program program) {
    std::string source = origin_of(program).source;
    return source.empty() ? program_text(program, CL_PROGRAM_SOURCE) : source;
}

std::string program_options(cl_program program) { return origin_of(program).options; }

cl_device_id program_device(cl_program program) {
    cl_device_id device = nullptr;
    driver().get_program_info(program, CL_PROGRAM_DEVICES, sizeof device, &device, nullptr);
    return device;
}

cl_program runnable(cl_program program) {
    const cl_program stand_in = origin_of(program).stand_in;
    return stand_in ? stand_in : program;
}

cl_int release(cl_program program) {
    cl_uint references = 0;
    driver().get_program_info(program, CL_PROGRAM_REFERENCE_COUNT, sizeof references, &references, nullptr);
    if (references == 1) {
        set_stand_in(program, nullptr);
        const std::lock_guard<std::mutex> guard(origins_mutex);
        origins.erase(program);
    }
    return driver().release_program(program);
}

cl_int build(cl_program program, cl_device_id device, const std::string& options, bool optimised) {
    const std::string real = known_options(options) + (optimised ? "" : "-cl-opt-disable");
    const cl_device_id built_for = device ? device : program_device(program);
    const CacheEntry entry = cache_entry(program, built_for, real);
    const std::string cached = entry.load();
    const cl_program stand_in =
        cached.empty() ? nullptr : from_built_binary(program, built_for, cached, real);
    if (stand_in) {
        remember(stand_in, {options, true, program_source(program), nullptr});
        set_stand_in(program, stand_in);
        return CL_SUCCESS;
    }
    set_stand_in(program, nullptr);
    const auto start = std::chrono::steady_clock::now();
    const cl_int error = driver().build_program(program, device ? 1 : 0, device ? &device : nullptr,
                                                real.c_str(), nullptr, nullptr);
    const int debug = virtual_gpu::options().debug;
    if (debug >= 2) {
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        std::fprintf(stderr, "virtual GPU: built in %.2f s: %s: %s\n", seconds.count(), real.c_str(),
                     program_text(program, CL_PROGRAM_KERNEL_NAMES).c_str());
    }
    if (!error && !virtual_gpu::options().cache.empty()) {
        entry.store(built_binary(program));
    }
    if (error && debug) {
        report(program, built_for, real, error);
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
        remember(program, {});
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
        remember(program, {built_with, true, "", nullptr});
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
        set_options(program, origin.options);
    }
    const cl_device_id device = count ? devices[0] : nullptr;
    // Of kernels that never run only names, arguments and attributes are wanted, which take a tenth of the
    // time.
    const bool optimise = options().optimise != Optimise::kNever && pacing() != Pacing::kTable;
    // Kernels that will all run as variants need no good code here, only their attributes.
    const bool sketch = optimise && may_all_be_turned(program_source(program));
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
    if (query == CL_PROGRAM_NUM_KERNELS || query == CL_PROGRAM_KERNEL_NAMES) {
        return driver().get_program_info(runnable(program), query, room, out, needed);
    }
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

VIRTUAL_GPU_EXPORT cl_int clGetProgramBuildInfo(cl_program program, cl_device_id device, cl_uint query,
                                                std::size_t room, void* out, std::size_t* needed) {
    return driver().get_program_build_info(runnable(program), device, query, room, out, needed);
}

VIRTUAL_GPU_EXPORT cl_int clReleaseProgram(cl_program program) { return release(program); }
