// OpenCL's calls as paced queues answer them, in place of the runtime's.
#pragma once

#include <functional>

#include "opencl.hpp"

namespace virtual_gpu {

// The call of that name, or null where the runtime's own is right.
void* paced_entry(const char* name);

// What clGetExtensionFunctionAddressForPlatform answers: those that enqueue and those that allocate are ours.
void* paced_extension(cl_platform_id platform, const char* name);

// clEnqueueNDRangeKernel. `launch` runs the kernel on the runtime's queue, for a time that is not known yet.
cl_int launch_paced(cl_command_queue queue, cl_kernel kernel, cl_uint count, const cl_event* events,
                    cl_event* event, const std::function<cl_int()>& launch);

// The same for VIRTUAL_GPU_PACED=record: kernels run one after the other, with the runtime's own events.
cl_int launch_recorded(cl_command_queue queue, cl_kernel kernel, const std::function<cl_int()>& launch);

}  // namespace virtual_gpu
