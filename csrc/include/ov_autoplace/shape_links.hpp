// Whether a cut makes a subgraph forget a shape that it has to transfer.
//
// HETERO makes the tensor between two subgraphs from what the producing subgraph knows of its shape, and the
// receiving one, which was built from the whole model's shapes, refuses it when that is less. A subgraph
// forgets what values in advance would have told it: the pattern of a Reshape that arrives as an input.
#pragma once

#include <cstdint>
#include <vector>

namespace ov_autoplace {

// What an edge has to do with that; the bits of Python's LinkKind.
enum LinkKind : std::int32_t {
    link_value = 1,        // the tensor's value is known in advance; a cut loses it
    link_shape = 2,        // the tensor's shape may be forgotten; a cut is an error then
    link_decides = 4,      // the value decides the consumer's shapes
    link_computes = 8,     // the consumer's own value is computed from the value
    link_measures = 16,    // the consumer's value is the tensor's shape
    link_sees_parts = 32,  // what the value decides is lost by a cut here only
    link_in_floats = 64    // the value is lost wherever the cuts are
};

struct ShapeLink {
    std::int32_t source = 0;
    std::int32_t target = 0;
    std::int32_t kind = 0;
};

// `links` are in topological order of their targets; `subgraph` holds a number per node. `lost` is scratch,
// a byte per node, all zero before and after.
bool hands_over_lost_shape(const std::vector<ShapeLink>& links, const std::int32_t* subgraph,
                           std::vector<std::uint8_t>& lost);

}  // namespace ov_autoplace
