#include "driver.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <mutex>

#include "forward.hpp"
#include "options.hpp"
#include "pace.hpp"

namespace virtual_gpu {
namespace {

void* library = nullptr;
Driver entries{};

template <typename Function>
bool find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (!function) {
        std::fprintf(stderr, "virtual GPU: the OpenCL runtime has no %s\n", name);
    }
    return function;
}

bool find_all() {
    return find("clGetPlatformIDs", entries.get_platform_ids) &
           find("clGetDeviceIDs", entries.get_device_ids) & find("clGetDeviceInfo", entries.get_device_info) &
           find("clCreateProgramWithSource", entries.create_program_with_source) &
           find("clCreateProgramWithBinary", entries.create_program_with_binary) &
           find("clBuildProgram", entries.build_program) &
           find("clGetProgramInfo", entries.get_program_info) &
           find("clGetProgramBuildInfo", entries.get_program_build_info) &
           find("clRetainProgram", entries.retain_program) &
           find("clReleaseProgram", entries.release_program) & find("clCreateKernel", entries.create_kernel) &
           find("clCreateKernelsInProgram", entries.create_kernels_in_program) &
           find("clReleaseKernel", entries.release_kernel) &
           find("clGetKernelInfo", entries.get_kernel_info) &
           find("clGetKernelWorkGroupInfo", entries.get_kernel_work_group_info) &
           find("clGetKernelSubGroupInfo", entries.get_kernel_sub_group_info) &
           find("clSetKernelArg", entries.set_kernel_arg) &
           find("clSetKernelArgMemPointerINTEL", entries.set_kernel_arg_pointer) &
           find("clEnqueueNDRangeKernel", entries.enqueue_kernel) & find("clFinish", entries.finish) &
           find("clGetCommandQueueInfo", entries.get_queue_info) &
           find("clGetExtensionFunctionAddressForPlatform", entries.extension_address);
}

bool load() {
    if (!pacing_fault().empty()) {
        std::fprintf(stderr, "virtual GPU: %s\n", pacing_fault().c_str());
        return false;
    }
    const char* path = options().driver.c_str();
    // Local: the runtime's own names must not meet ours, which are the same.
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        std::fprintf(stderr, "virtual GPU: %s; VIRTUAL_GPU_DRIVER must name libintelocl.so\n", dlerror());
        return false;
    }
    return find_all() && fill_forward_table();
}

}  // namespace

bool load_driver() {
    static const bool loaded = load();
    return loaded;
}

const Driver& driver() { return entries; }

void* driver_entry(const char* name) { return dlsym(library, name); }

}  // namespace virtual_gpu
