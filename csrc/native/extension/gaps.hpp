// Devices for ops that have none: those that were added after an annotated model was read.
#pragma once

#include <openvino/core/node.hpp>
#include <string>

namespace ov_autoplace {

// An op takes the device of what it reads, so that a cut moves behind it. Constants, computations of shapes,
// and ops behind which HETERO cannot cut take the device of what reads them. Nothing happens where no
// neighbour has a device. All that hangs together with the ops named below through new ops (see
// FollowerBase::is_new) is filled. The latter two are for cloning and sign (see cached.hpp) what they pass
// that is annotated.

// The neighbours of `op`.
void fill_gaps_around(ov::Node& op);

// The ops that depend on `op`, and constants that they read after what comes from `op`: what is cloned after
// `op`.
void fill_gaps_after(const ov::Node& op);

// The producers of `reader`, which counts as an op of `device`. Constant computations among them are replaced
// by their values.
void fill_gaps_before(const ov::Node& reader, const std::string& device);

}  // namespace ov_autoplace
