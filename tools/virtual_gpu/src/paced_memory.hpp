// Memory while kernels do not run. Nothing that a kernel was to compute is there, so what is read is what was
// copied there, or zero: neither numbers that slow the processor down nor indices that lead anywhere.
#pragma once

#include "opencl.hpp"

namespace virtual_gpu {

// clCreateBuffer.
cl_mem create_zeroed_buffer(cl_context context, cl_ulong flags, std::size_t size, void* host, cl_int* error);

// What stands for a function of the runtime that allocates unified memory; null for any other function.
void* zeroing_allocation(const char* name, void* function);

}  // namespace virtual_gpu
