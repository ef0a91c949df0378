// What the environment asks of the shim; README.md describes the variables.
#pragma once

#include <map>
#include <string>

#include "opencl.hpp"

namespace virtual_gpu {

enum class Optimise {
    kNever,   // wrong results in kernels whose lanes exchange data under a condition
    kAlways,  // minutes of compiling for large convolutions
    kMostly,  // all kernels but those that take so long
};

struct Options {
    std::string driver = "libintelocl.so";                                          // VIRTUAL_GPU_DRIVER
    std::string name = "Intel(R) UHD Graphics 630 [0x3e92] (virtual, on the CPU)";  // VIRTUAL_GPU_NAME
    Optimise optimise = Optimise::kMostly;                                          // VIRTUAL_GPU_OPTIMISE
    bool half = true;   // VIRTUAL_GPU_FP16: whether the device has 16-bit floats
    int debug = 0;      // VIRTUAL_GPU_DEBUG: 1 failed calls, 2 also builds, 3 also launches
    std::string dump;   // VIRTUAL_GPU_DUMP: folder for the sources of programs that do not build
    std::string cache;  // VIRTUAL_GPU_CACHE: folder that keeps built programs
    std::string paced;  // VIRTUAL_GPU_PACED: whether kernels take a given time instead of running
    std::map<cl_uint, cl_ulong> answers;  // VIRTUAL_GPU_SET: numbers by device query
};

// Read once.
const Options& options();

}  // namespace virtual_gpu
