#include "variants.hpp"

#include <vector>

#include "driver.hpp"
#include "options.hpp"
#include "programs.hpp"

namespace virtual_gpu {

bool Shape::is_turned() const {
    const auto& [x, y, z] = local;
    return sub_group && x && y * z > 1 && x % sub_group;
}

Shape compiled_shape(cl_kernel kernel, cl_device_id device) {
    Shape shape;
    if (driver().get_kernel_sub_group_info(kernel, device, CL_KERNEL_COMPILE_SUB_GROUP_SIZE_INTEL, 0, nullptr,
                                           sizeof shape.sub_group, &shape.sub_group, nullptr)) {
        shape.sub_group = 0;
    }
    if (driver().get_kernel_work_group_info(kernel, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                            sizeof shape.local, shape.local.data(), nullptr)) {
        shape.local = {};
    }
    return shape;
}

bool all_kernels_turned(cl_program program) {
    program = runnable(program);
    cl_uint count = 0;
    if (driver().create_kernels_in_program(program, 0, nullptr, &count) || count == 0) {
        return false;
    }
    std::vector<cl_kernel> kernels(count);
    if (driver().create_kernels_in_program(program, count, kernels.data(), nullptr)) {
        return false;
    }
    bool all = true;
    for (const cl_kernel kernel : kernels) {
        all = compiled_shape(kernel, program_device(program)).is_turned() && all;
        driver().release_kernel(kernel);
    }
    return all;
}

ProgramVariants::~ProgramVariants() {
    for (const auto& [size, program] : made_) {
        if (program) {
            release(program);
        }
    }
}

cl_program ProgramVariants::get(const LocalSize& size) {
    const auto found = made_.find(size);
    return found != made_.end() ? found->second : made_[size] = make(size);
}

cl_program ProgramVariants::make(const LocalSize& size) const {
    const std::string source = program_source(base_);
    if (source.empty()) {
        return nullptr;
    }
    cl_context context = nullptr;
    driver().get_program_info(base_, CL_PROGRAM_CONTEXT, sizeof context, &context, nullptr);
    const std::string text = turned(source, size);
    const char* part = text.c_str();
    const cl_program program = driver().create_program_with_source(context, 1, &part, nullptr, nullptr);
    const bool optimise = options().optimise != Optimise::kNever;
    if (program && build(program, program_device(base_), program_options(base_), optimise)) {
        release(program);
        return nullptr;
    }
    return program;
}

}  // namespace virtual_gpu
