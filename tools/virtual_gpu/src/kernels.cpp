// Kernels: each keeps its program valid, and each that needs it has variants that are launched instead.
//
// The plugin asks a kernel for its program after it has released the program's own handle. A kernel keeps its
// program alive, but this runtime then refuses the handle (clRetainProgram: CL_INVALID_PROGRAM). So a
// reference is held here for as long as the kernel lives.
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "driver.hpp"
#include "options.hpp"
#include "pace.hpp"
#include "paced_calls.hpp"
#include "programs.hpp"
#include "variants.hpp"

namespace virtual_gpu {
namespace {

// An argument as it was last set, to be set on variants too.
struct Argument {
    enum { kUnset, kValue, kPointer } kind = kUnset;
    std::size_t size = 0;
    std::vector<unsigned char> bytes;  // empty for local memory, which has a size only
    const void* pointer = nullptr;

    cl_int set(cl_kernel kernel, cl_uint index) const {
        if (kind == kValue) {
            return driver().set_kernel_arg(kernel, index, size, bytes.empty() ? nullptr : bytes.data());
        }
        return kind == kPointer ? driver().set_kernel_arg_pointer(kernel, index, pointer) : CL_SUCCESS;
    }
};

// One reference to a program and the variants that its kernels share; gone with the last of them.
class Program {
public:
    explicit Program(cl_program handle) : handle_(handle), variants_(handle) {
        driver().retain_program(handle);
    }
    ~Program() { release(handle_); }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    // Building takes long and must not hold up the launches of other kernels: it has its own mutex.
    cl_program variant(const LocalSize& size) {
        const std::lock_guard<std::mutex> guard(mutex_);
        return variants_.get(size);
    }

private:
    cl_program handle_;
    std::mutex mutex_;
    ProgramVariants variants_;
};

struct Kernel {
    Kernel(cl_kernel handle, std::shared_ptr<Program> program, std::size_t sub_group)
        : handle(handle), program(std::move(program)), sub_group(sub_group) {
        cl_uint count = 0;
        driver().get_kernel_info(handle, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr);
        arguments.resize(count);
    }
    ~Kernel() {
        for (const auto& [size, variant] : variants) {
            if (variant) {
                driver().release_kernel(variant);
            }
        }
    }
    Kernel(const Kernel&) = delete;
    Kernel& operator=(const Kernel&) = delete;

    // Null when there is no such variant.
    cl_kernel variant(const LocalSize& size) {
        const auto found = variants.find(size);
        if (found != variants.end()) {
            return found->second;
        }
        cl_kernel made = nullptr;
        if (const cl_program turned = program->variant(size)) {
            char name[512] = "";
            driver().get_kernel_info(handle, CL_KERNEL_FUNCTION_NAME, sizeof name, name, nullptr);
            made = driver().create_kernel(runnable(turned), name, nullptr);
        }
        for (cl_uint i = 0; made && i < arguments.size(); ++i) {
            arguments[i].set(made, i);
        }
        return variants[size] = made;
    }

    void set(cl_uint index, Argument argument) {
        if (index >= arguments.size()) {
            return;
        }
        for (const auto& [size, variant] : variants) {
            if (variant) {
                argument.set(variant, index);
            }
        }
        arguments[index] = std::move(argument);
    }

    cl_kernel handle;
    std::shared_ptr<Program> program;
    std::size_t sub_group;
    std::vector<Argument> arguments;
    std::map<LocalSize, cl_kernel> variants;
};

// Never destroyed: the plugin releases kernels while the process ends.
struct Registry {
    std::mutex mutex;
    std::unordered_map<cl_kernel, std::unique_ptr<Kernel>> kernels;
    std::unordered_map<cl_program, std::weak_ptr<Program>> programs;
};

Registry& registry() {
    static Registry& only = *new Registry;
    return only;
}

std::shared_ptr<Program> shared_program(cl_program handle) {
    const std::lock_guard<std::mutex> guard(registry().mutex);
    std::weak_ptr<Program>& known = registry().programs[handle];
    std::shared_ptr<Program> program = known.lock();
    if (!program) {
        known = program = std::make_shared<Program>(handle);
    }
    return program;
}

void add(cl_kernel handle, cl_program program) {
    const Shape shape = compiled_shape(handle, program_device(program));
    auto kernel = std::make_unique<Kernel>(handle, shared_program(program), shape.sub_group);
    if (shape.is_turned() && pacing() != Pacing::kTable) {
        kernel->variant(shape.local);  // while the model is compiled, not in its first inference
    }
    const std::lock_guard<std::mutex> guard(registry().mutex);
    registry().kernels[handle] = std::move(kernel);
}

// Null for one that is not known. The registry's mutex must be held.
Kernel* find(cl_kernel handle) {
    const auto found = registry().kernels.find(handle);
    return found == registry().kernels.end() ? nullptr : found->second.get();
}

void keep(cl_kernel handle, cl_uint index, Argument argument) {
    const std::lock_guard<std::mutex> guard(registry().mutex);
    Kernel* kernel = find(handle);
    if (kernel && kernel->sub_group) {
        kernel->set(index, std::move(argument));
    }
}

// A launch whose sub-groups this runtime would form otherwise than a GPU.
struct Turned {
    cl_kernel kernel = nullptr;  // null: launch it as it is
    LocalSize global{};
    LocalSize local{};
};

Turned turned_launch(cl_kernel handle, cl_uint dimensions, const std::size_t* offset,
                     const std::size_t* global, const std::size_t* local) {
    if (!local || offset) {
        return {};
    }
    LocalSize g = {1, 1, 1};
    LocalSize l = {1, 1, 1};
    for (cl_uint i = 0; i < dimensions && i < 3; ++i) {
        g[i] = global[i];
        l[i] = local[i];
    }
    const std::lock_guard<std::mutex> guard(registry().mutex);
    Kernel* kernel = find(handle);
    const bool even = g[0] % l[0] == 0 && g[1] % l[1] == 0 && g[2] % l[2] == 0;
    if (!kernel || !even || !Shape{kernel->sub_group, l}.is_turned()) {
        return {};
    }
    const std::size_t all = l[0] * l[1] * l[2];
    const cl_kernel variant = kernel->variant(l);
    if (!variant) {
        std::fprintf(stderr, "virtual GPU: a kernel has no variant; its results will be wrong\n");
    }
    return {variant, {g[0] / l[0] * all, g[1] / l[1], g[2] / l[2]}, {all, 1, 1}};
}

void report_launch(cl_kernel kernel, bool turned, cl_uint dimensions, const std::size_t* global,
                   const std::size_t* local, cl_int error) {
    char name[512] = "";
    driver().get_kernel_info(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, nullptr);
    std::fprintf(stderr, "virtual GPU: run %s%s", name, turned ? " (turned)" : "");
    for (cl_uint i = 0; i < dimensions; ++i) {
        std::fprintf(stderr, " %zu/%zu", global[i], local ? local[i] : 0);
    }
    std::fprintf(stderr, " -> %d\n", error);
}

struct Range {
    cl_uint dimensions;
    const std::size_t* offset;
    const std::size_t* global;
    const std::size_t* local;
};

cl_int launch(cl_command_queue queue, cl_kernel kernel, const Range& range, cl_uint count,
              const cl_event* events, cl_event* event) {
    const auto& [dimensions, offset, global, local] = range;
    const Turned turned = turned_launch(kernel, dimensions, offset, global, local);
    const cl_int error =
        turned.kernel
            ? driver().enqueue_kernel(queue, turned.kernel, 3, nullptr, turned.global.data(),
                                      turned.local.data(), count, events, event)
            : driver().enqueue_kernel(queue, kernel, dimensions, offset, global, local, count, events, event);
    if ((error && options().debug) || options().debug >= 3) {
        report_launch(kernel, turned.kernel != nullptr, dimensions, global, local, error);
    }
    return error;
}

// What the plugin gets for clSetKernelArgMemPointerINTEL.
cl_int set_pointer(cl_kernel handle, cl_uint index, const void* pointer) {
    const cl_int error = driver().set_kernel_arg_pointer(handle, index, pointer);
    if (error && options().debug) {
        std::fprintf(stderr, "virtual GPU: clSetKernelArgMemPointerINTEL %u -> %d\n", index, error);
    }
    if (!error) {
        Argument argument;
        argument.kind = Argument::kPointer;
        argument.pointer = pointer;
        keep(handle, index, std::move(argument));
    }
    return error;
}

}  // namespace
}  // namespace virtual_gpu

using namespace virtual_gpu;

VIRTUAL_GPU_EXPORT cl_kernel clCreateKernel(cl_program program, const char* name, cl_int* error) {
    cl_int code = CL_SUCCESS;
    const cl_kernel kernel = driver().create_kernel(runnable(program), name, &code);
    if (code == CL_SUCCESS) {
        add(kernel, runnable(program));
    } else if (options().debug) {
        std::fprintf(stderr, "virtual GPU: clCreateKernel %s -> %d\n", name, code);
    }
    if (error) {
        *error = code;
    }
    return kernel;
}

VIRTUAL_GPU_EXPORT cl_int clCreateKernelsInProgram(cl_program program, cl_uint room, cl_kernel* kernels,
                                                   cl_uint* count) {
    cl_uint made = 0;
    const cl_int error = driver().create_kernels_in_program(runnable(program), room, kernels, &made);
    if (count) {
        *count = made;
    }
    if (error && options().debug) {
        std::fprintf(stderr, "virtual GPU: clCreateKernelsInProgram -> %d\n", error);
    }
    for (cl_uint i = 0; !error && kernels && i < made && i < room; ++i) {
        add(kernels[i], runnable(program));
    }
    return error;
}

VIRTUAL_GPU_EXPORT cl_int clReleaseKernel(cl_kernel handle) {
    cl_uint references = 0;
    driver().get_kernel_info(handle, CL_KERNEL_REFERENCE_COUNT, sizeof references, &references, nullptr);
    std::unique_ptr<Kernel> last;
    if (references == 1) {
        const std::lock_guard<std::mutex> guard(registry().mutex);
        const auto found = registry().kernels.find(handle);
        if (found != registry().kernels.end()) {
            last = std::move(found->second);
            registry().kernels.erase(found);
        }
    }
    return driver().release_kernel(handle);  // what `last` holds goes after it
}

VIRTUAL_GPU_EXPORT cl_int clSetKernelArg(cl_kernel handle, cl_uint index, std::size_t size,
                                         const void* value) {
    const cl_int error = driver().set_kernel_arg(handle, index, size, value);
    if (error && options().debug) {
        std::fprintf(stderr, "virtual GPU: clSetKernelArg %u of %zu bytes -> %d\n", index, size, error);
    }
    if (!error) {
        Argument argument;
        argument.kind = Argument::kValue;
        argument.size = size;
        if (value) {
            const auto* bytes = static_cast<const unsigned char*>(value);
            argument.bytes.assign(bytes, bytes + size);
        }
        keep(handle, index, std::move(argument));
    }
    return error;
}

VIRTUAL_GPU_EXPORT cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                                 const std::size_t* offset, const std::size_t* global,
                                                 const std::size_t* local, cl_uint count,
                                                 const cl_event* events, cl_event* event) {
    const Range range = {dimensions, offset, global, local};
    if (is_paced()) {
        return launch_paced(queue, kernel, count, events, event,
                            [&] { return launch(queue, kernel, range, 0, nullptr, nullptr); });
    }
    if (pacing() == Pacing::kRecord) {
        return launch_recorded(queue, kernel,
                               [&] { return launch(queue, kernel, range, count, events, event); });
    }
    return launch(queue, kernel, range, count, events, event);
}

VIRTUAL_GPU_EXPORT void* clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char* name) {
    if (std::strcmp(name, "clSetKernelArgMemPointerINTEL") == 0) {
        return reinterpret_cast<void*>(set_pointer);
    }
    return is_paced() ? paced_extension(platform, name) : driver().extension_address(platform, name);
}
