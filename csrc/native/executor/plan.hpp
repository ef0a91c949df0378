// What the executor runs: submodels, the lanes that they belong to, and where each input comes from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <openvino/core/partial_shape.hpp>
#include <openvino/runtime/tensor.hpp>
#include <string>
#include <vector>

#include "properties.hpp"

namespace ov_autoplace::executor {

// A device that runs one submodel at a time. Lanes of equal device and properties are copies of each other.
struct Lane {
    std::string device;
    Properties properties;
};

// The tensor that a submodel, or one of the plan's outputs, gets.
struct Source {
    static constexpr int64_t data = -1;
    // Index of the submodel whose output it is, or `data`: an input of the whole.
    int64_t submodel = data;
    size_t port = 0;
};

struct Submodel {
    std::string name;
    size_t lane = 0;
    // A lane that is free takes, of its submodels that are ready, the one of smallest rank.
    int64_t rank = 0;
    std::vector<Source> inputs;
};

// Submodels are in topological order.
struct Plan {
    size_t data_inputs = 0;
    std::vector<Lane> lanes;
    std::vector<Submodel> submodels;
    std::vector<Source> results;
    // What is promised of the results' shapes.
    std::vector<ov::PartialShape> result_shapes;
};

// A submodel as a file has it: bytes.
struct Serialized {
    ov::Tensor xml, weights;
};

// Throws ov::Exception, in one sentence, unless every lane and source exists, each result has a shape, and
// each submodel reads earlier ones only. Whether ports fit is known when the submodels are read.
void check(const Plan& plan);

// For each lane, the first one that it is a copy of, itself where there is none.
std::vector<size_t> first_copies(const std::vector<Lane>& lanes);

}  // namespace ov_autoplace::executor
