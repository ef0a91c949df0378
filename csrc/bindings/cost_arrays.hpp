// The arrays of a cost table that both simulators take.
#pragma once

#include <vector>

#include "arrays.hpp"
#include "ov_autoplace/shape_links.hpp"

namespace ov_autoplace::bindings {

inline std::vector<double> flat(const Matrix<double>& array) {
    return std::vector<double>(array.data(), array.data() + array.size());
}

inline std::vector<ShapeLink> shape_links(const Matrix<std::int32_t>& array) {
    check_size(array.shape(1), 3, "a link");
    std::vector<ShapeLink> result;
    for (std::size_t i = 0; i < array.shape(0); ++i) {
        result.push_back(ShapeLink{array(i, 0), array(i, 1), array(i, 2)});
    }
    return result;
}

}  // namespace ov_autoplace::bindings
