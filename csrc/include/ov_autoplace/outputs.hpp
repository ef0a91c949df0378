// What a model computes, kept in a file, and how far another answer is from it.
#pragma once

#include <openvino/core/model.hpp>
#include <openvino/runtime/core.hpp>
#include <string>
#include <vector>

#include "ov_autoplace/checkpoint.hpp"

namespace ov_autoplace {

// Of two answers that have nothing in common: shapes differ, or one is finite where the other is not.
inline constexpr double kUnrelated = 2.0;

// Writes tensors for output_differences(). Throws ProfilerError where the file cannot be written.
void save_outputs(const std::vector<ov::Tensor>& outputs, const std::string& path);

// How far each output in one file is from that in another one, from 0 to kUnrelated. Of floating-point
// tensors it is the largest difference of two elements over the largest magnitude in either tensor, and at
// least `smallest`; NaN and infinity in the same places count as equal. Of others it is the share of elements
// that differ. Throws ProfilerError where a file cannot be read.
std::vector<double> output_differences(const std::string& path, const std::string& other, double smallest);

// How a model is run one op after the other, none of which knows of its neighbours.
struct OpByOp {
    // Ops that have one are run by OpenVINO's own reference implementation; the others, or all, are compiled
    // for the CPU, each alone, in f32.
    bool evaluate = true;
    bool compile = true;  // otherwise a model with an op that cannot be evaluated is refused
    double seconds = 30;  // it is given up after so long
    // Besides the run itself, so many in which every op's results are rounded at random, with relative errors
    // of up to `noise`: Monte Carlo arithmetic (Parker, 1997).
    std::size_t disturbed = 0;
    double noise = 0;
};

// The outputs of each run, the undisturbed one first. Throws ProfilerError where it cannot be done or not in
// time.
std::vector<std::vector<ov::Tensor>> run_op_by_op(ov::Core& core, const ov::Model& model,
                                                  const std::vector<ov::Tensor>& inputs, const OpByOp& how,
                                                  const Checkpoint& checkpoint);

}  // namespace ov_autoplace
