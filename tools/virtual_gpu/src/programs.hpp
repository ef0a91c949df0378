// Programs: what they are made of, and building them.
#pragma once

#include <string>

#include "opencl.hpp"

namespace virtual_gpu {

// Empty for a program that has no source.
std::string program_source(cl_program program);

// The options that the plugin gave; empty for a program that was never built.
std::string program_options(cl_program program);

// The program whose kernels run: the program itself, or the one that was taken from the cache in its place.
cl_program runnable(cl_program program);

cl_device_id program_device(cl_program program);

// Builds for `device`, or for all of the program's devices if it is null, unless the cache has the result.
cl_int build(cl_program program, cl_device_id device, const std::string& options, bool optimised);

// Gives up a reference, as clReleaseProgram does.
cl_int release(cl_program program);

}  // namespace virtual_gpu
