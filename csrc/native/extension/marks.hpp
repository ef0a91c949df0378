// The two marks that say on which device an op runs.
//
// `user_data:autoplace` is what `ov-autoplace annotate` writes and an IR keeps; `affinity` is what HETERO
// reads when it compiles, and no IR keeps. Once an op has an affinity it stays: a user's own is never
// overwritten.
#pragma once

#include <openvino/core/node.hpp>
#include <string>

namespace ov_autoplace {

// Affinity of an op, or an empty text.
std::string affinity(const ov::Node& op);
bool has_affinity(const ov::Node& op);
void set_affinity(ov::Node& op, const std::string& device);

// Turns the op's annotation, if it has one, into its affinity, unless it has one already.
// Returns whether the op has an affinity now.
bool mark(ov::Node& op);

// Marks the producers of `inputs`, and theirs in turn. Returns whether one of them has an affinity now: if
// none has, the model is not annotated.
bool mark_producers(const ov::OutputVector& inputs);

// Whether the op was in an annotated model. Ops that were added since have an affinity at most.
bool is_annotated(const ov::Node& op);

}  // namespace ov_autoplace
