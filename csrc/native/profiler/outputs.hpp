// What a model computes, kept in a file.
#pragma once

#include <openvino/runtime/tensor.hpp>
#include <string>
#include <vector>

namespace ov_autoplace {

// Writes tensors in the format that ov_autoplace_save_outputs describes; all floating-point elements as f32,
// texts as their hashes. Throws ProfilerError where the file cannot be written.
void save_outputs(const std::vector<ov::Tensor>& outputs, const std::string& path);

}  // namespace ov_autoplace
