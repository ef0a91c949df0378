// Intel's OpenCL runtime for CPUs: loaded at the first call, and the calls that the shim needs of it.
#pragma once

#include "opencl.hpp"

namespace virtual_gpu {

struct Driver {
    cl_int (*get_platform_ids)(cl_uint, cl_platform_id*, cl_uint*);
    cl_int (*get_device_ids)(cl_platform_id, cl_ulong, cl_uint, cl_device_id*, cl_uint*);
    cl_int (*get_device_info)(cl_device_id, cl_uint, std::size_t, void*, std::size_t*);
    cl_program (*create_program_with_source)(cl_context, cl_uint, const char**, const std::size_t*, cl_int*);
    cl_program (*create_program_with_binary)(cl_context, cl_uint, const cl_device_id*, const std::size_t*,
                                             const unsigned char**, cl_int*, cl_int*);
    cl_int (*build_program)(cl_program, cl_uint, const cl_device_id*, const char*, BuildCallback, void*);
    cl_int (*get_program_info)(cl_program, cl_uint, std::size_t, void*, std::size_t*);
    cl_int (*get_program_build_info)(cl_program, cl_device_id, cl_uint, std::size_t, void*, std::size_t*);
    cl_int (*retain_program)(cl_program);
    cl_int (*release_program)(cl_program);
    cl_kernel (*create_kernel)(cl_program, const char*, cl_int*);
    cl_int (*create_kernels_in_program)(cl_program, cl_uint, cl_kernel*, cl_uint*);
    cl_int (*release_kernel)(cl_kernel);
    cl_int (*get_kernel_info)(cl_kernel, cl_uint, std::size_t, void*, std::size_t*);
    cl_int (*get_kernel_work_group_info)(cl_kernel, cl_device_id, cl_uint, std::size_t, void*, std::size_t*);
    cl_int (*get_kernel_sub_group_info)(cl_kernel, cl_device_id, cl_uint, std::size_t, const void*,
                                        std::size_t, void*, std::size_t*);
    cl_int (*set_kernel_arg)(cl_kernel, cl_uint, std::size_t, const void*);
    cl_int (*set_kernel_arg_pointer)(cl_kernel, cl_uint, const void*);  // clSetKernelArgMemPointerINTEL
    cl_int (*enqueue_kernel)(cl_command_queue, cl_kernel, cl_uint, const std::size_t*, const std::size_t*,
                             const std::size_t*, cl_uint, const cl_event*, cl_event*);
    cl_int (*finish)(cl_command_queue);
    cl_int (*get_queue_info)(cl_command_queue, cl_uint, std::size_t, void*, std::size_t*);
    void* (*extension_address)(cl_platform_id, const char*);
};

// Loads the runtime once and fills the table of forwarded calls. False, and a line on stderr, when it
// is not there.
bool load_driver();

// Valid after load_driver(): every handle that a caller can have comes from a call that loads.
const Driver& driver();

// Address of an entry of the runtime, or null.
void* driver_entry(const char* name);

}  // namespace virtual_gpu

// Functions that programs find by name.
#define VIRTUAL_GPU_EXPORT extern "C" __attribute__((visibility("default")))
