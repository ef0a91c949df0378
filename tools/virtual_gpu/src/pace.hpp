// How long a kernel takes in the paced mode, in which it does not run: VIRTUAL_GPU_PACED.
#pragma once

#include <string>

#include "opencl.hpp"

namespace virtual_gpu {

// By CLOCK_MONOTONIC.
using Nanoseconds = std::uint64_t;

enum class Pacing {
    kOff,     // kernels run
    kRecord,  // kernels run, one after the other, and a table of their times is written when the process ends
    kFactor,  // the first runs of each kernel are real, and each later one takes so many times as long
    kTable,   // no kernel runs
};

// What VIRTUAL_GPU_PACED asks for; kOff where it makes no sense.
Pacing pacing();

// Whether kernels take their time by the clock and outputs are undefined.
inline bool is_paced() { return pacing() == Pacing::kFactor || pacing() == Pacing::kTable; }

// One sentence when VIRTUAL_GPU_PACED, or the table that it names, makes no sense; else empty.
const std::string& pacing_fault();

// What the device's name says of it, the table's or the factor's mark included; empty when nothing is paced.
std::string pacing_mark();

// By this name a kernel's time is known: the plugin makes it unique by a hash of what the kernel is made for.
std::string kernel_name(cl_kernel kernel);

// What a launch of a kernel takes, if that is known. False: it has to run and its time has to be noted. With
// `must_know`, a kernel that was never seen takes what a table that does not list it gives.
bool paced_time(const std::string& name, bool must_know, Nanoseconds& time);

// Note how long a kernel ran.
void note_run(const std::string& name, Nanoseconds time);

Nanoseconds now();

// Without using the processor, and to within some microseconds.
void sleep_until(Nanoseconds time);

}  // namespace virtual_gpu
