// How OpenCL's query functions hand out a value.
#pragma once

#include <cstring>

#include "opencl.hpp"

namespace virtual_gpu {

// Copies `size` bytes into the caller's `room` and tells how many there are; both are optional.
inline cl_int answer(const void* value, std::size_t size, std::size_t room, void* out, std::size_t* needed) {
    if (needed) {
        *needed = size;
    }
    if (out) {
        if (room < size) {
            return CL_INVALID_VALUE;
        }
        std::memcpy(out, value, size);
    }
    return CL_SUCCESS;
}

}  // namespace virtual_gpu
