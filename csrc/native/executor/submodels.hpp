// The compiled submodels of a plan.
#pragma once

#include <memory>
#include <openvino/runtime/compiled_model.hpp>
#include <openvino/runtime/core.hpp>
#include <vector>

#include "affinity.hpp"
#include "plan.hpp"

namespace ov_autoplace::executor {

struct Compiled {
    // Where all threads may run that were made for these.
    ProcessMask mask;
    // Goes last: what it made needs its plugins.
    std::shared_ptr<ov::Core> core;
    std::vector<ov::CompiledModel> models;
    // How many requests of each can run at once.
    std::vector<uint32_t> streams;
    // Types that the plan's own inputs have to have; dynamic where no submodel reads the input.
    std::vector<ov::element::Type> data_types;
    std::vector<ov::element::Type> result_types;
};

// Compiles each submodel for its lane. Throws ov::Exception, in one sentence with submodel and device, where
// a submodel cannot be read or compiled, or does not fit the others.
Compiled compile(const Plan& plan, const std::vector<Serialized>& files);

}  // namespace ov_autoplace::executor
