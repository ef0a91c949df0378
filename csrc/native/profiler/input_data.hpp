// Valid, reproducible data for the inputs of a model that is only to be timed.
#pragma once

#include <cstdint>
#include <openvino/runtime/tensor.hpp>
#include <random>

namespace ov_autoplace {

// Fills `tensor`: floating point uniform in [-1, 1), integers in [0, high), booleans either, types of less
// than a byte zero. Throws std::invalid_argument for element types that hold no numbers and for strided
// tensors.
void fill_tensor(ov::Tensor& tensor, std::int64_t high, std::mt19937_64& generator);

}  // namespace ov_autoplace
