// Variants: programs and kernels whose work-items are numbered along x alone.
//
// On Intel's GPUs a sub-group is a run of consecutive linear local ids, x fastest; this runtime makes
// sub-groups along x only. A work-group of 1 x 1 x 16 is one sub-group of 16 there and sixteen of one
// here, and a kernel that exchanges data within its sub-group would be silently wrong. So such a kernel
// is built once more from a source whose ids are computed from the linear one.
#pragma once

#include <map>

#include "opencl.hpp"
#include "sources.hpp"

namespace virtual_gpu {

// What a kernel was compiled for.
struct Shape {
    std::size_t sub_group = 0;  // required size of a sub-group; 0: none
    LocalSize local{};          // required local size; zeros: none

    bool is_turned() const;
};

Shape compiled_shape(cl_kernel kernel, cl_device_id device);

// Whether each kernel of a built program runs as a variant and never as it is.
bool all_kernels_turned(cl_program program);

// The variants of one program, made when they are first wanted.
class ProgramVariants {
public:
    explicit ProgramVariants(cl_program base) : base_(base) {}
    ProgramVariants(const ProgramVariants&) = delete;
    ProgramVariants& operator=(const ProgramVariants&) = delete;
    ~ProgramVariants();

    // Null when the source is not known or does not build.
    cl_program get(const LocalSize& size);

private:
    cl_program make(const LocalSize& size) const;

    cl_program base_;
    std::map<LocalSize, cl_program> made_;
};

}  // namespace virtual_gpu
