// Node kinds and sets of rules as Python passes them: as numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "ov_autoplace/partition_graph.hpp"

namespace ov_autoplace::bindings {

template <typename Number>
std::vector<NodeKind> node_kinds(const Vector<Number>& numbers) {
    std::vector<NodeKind> kinds;
    kinds.reserve(numbers.shape(0));
    for (std::size_t i = 0; i < numbers.shape(0); ++i) {
        const auto number = static_cast<std::int64_t>(numbers.data()[i]);
        if (number < 0 || number > static_cast<std::int64_t>(NodeKind::group)) {
            const std::string message =
                "the kinds hold " + std::to_string(number) + ", which is no node kind";
            throw nb::value_error(message.c_str());
        }
        kinds.push_back(static_cast<NodeKind>(number));
    }
    return kinds;
}

inline HeteroRules hetero_rules(std::int32_t number) {
    if (number < 0 || number > static_cast<std::int32_t>(HeteroRules::isolating)) {
        const std::string message = "there are no rules " + std::to_string(number);
        throw nb::value_error(message.c_str());
    }
    return static_cast<HeteroRules>(number);
}

}  // namespace ov_autoplace::bindings
