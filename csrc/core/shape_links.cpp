#include "ov_autoplace/shape_links.hpp"

namespace ov_autoplace {

bool hands_over_lost_shape(const std::vector<ShapeLink>& links, const std::int32_t* subgraph,
                           std::vector<std::uint8_t>& lost) {
    constexpr std::uint8_t value = 1, shape = 2;
    bool found = false;
    for (const ShapeLink& link : links) {
        const bool cut = subgraph[link.source] != subgraph[link.target];
        if ((link.kind & link_shape) && (lost[link.source] & shape)) {
            found = cut;
            if (found) break;
            lost[link.target] |= link.kind & link_measures ? value : value | shape;
        }
        const bool unknown = cut || (link.kind & link_in_floats) || (lost[link.source] & value);
        if ((link.kind & link_value) && unknown) {
            const bool decides = (link.kind & link_decides) && (cut || !(link.kind & link_sees_parts));
            lost[link.target] |= decides ? value | shape : value;
        }
    }
    for (const ShapeLink& link : links) lost[link.target] = 0;
    return found;
}

}  // namespace ov_autoplace
