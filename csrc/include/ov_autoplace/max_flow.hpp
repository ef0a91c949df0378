// Maximum flow and minimum cuts in networks with integer capacities.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ov_autoplace {

// K arcs between `nodes` nodes. An arc lets `forward` units pass from its tail to its head and `backward`
// units the other way.
struct FlowNetwork {
    std::int32_t nodes = 0;
    std::int32_t source = 0;
    std::int32_t sink = 0;
    std::size_t arcs = 0;
    const std::int32_t* tail = nullptr;
    const std::int32_t* head = nullptr;
    const std::int64_t* forward = nullptr;
    const std::int64_t* backward = nullptr;
};

struct MinimumCut {
    std::int64_t flow = 0;
    // Per node: whether it is on the source side of the cut whose source side is the smallest, and of the
    // one whose source side is the largest. Both have the value `flow`.
    std::vector<std::uint8_t> smallest;
    std::vector<std::uint8_t> largest;
};

// Throws std::invalid_argument for an arc that names no node, a negative capacity, equal terminals, or
// capacities around the source that may overflow together.
MinimumCut minimum_cut(const FlowNetwork& network);

}  // namespace ov_autoplace
