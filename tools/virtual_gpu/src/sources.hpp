// What is changed in the text of kernels and in the options they are built with. Nothing here calls OpenCL.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace virtual_gpu {

// Work items of a work-group along x, y and z.
using LocalSize = std::array<std::size_t, 3>;

// The source with what this compiler and this processor need: a barrier where a kernel relies on lanes in
// lockstep, and no optimisation of kernels over which the compiler takes minutes (if `spare_large`).
std::string mended(const std::string& source, bool spare_large);

// The options without those that only the compiler for GPUs knows.
std::string known_options(const std::string& options);

// Whether each kernel of the source may be one that is launched as one sub-group along another dimension than
// the first.
bool may_all_be_turned(const std::string& source);

// The source with work-items numbered along x alone: to be launched with the local size (x * y * z, 1, 1), it
// computes what it did with (x, y, z).
std::string turned(const std::string& source, const LocalSize& size);

}  // namespace virtual_gpu
