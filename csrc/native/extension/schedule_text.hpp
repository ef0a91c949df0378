// The plan of an op autoplace::Schedule, from attributes that an IR can carry.
#pragma once

#include <cstdint>
#include <openvino/core/partial_shape.hpp>
#include <openvino/core/type/element_type.hpp>
#include <string>
#include <vector>

#include "../executor/plan.hpp"

namespace ov_autoplace {

// The attributes as they are in the file; see schedule_api.h.
struct ScheduleAttributes {
    int64_t format = 0, data_inputs = 0;
    std::vector<std::string> lanes, lane_properties, submodels, output_types;
    std::vector<int64_t> lane_of, rank, sources, results, input_shapes, output_shapes;

    bool operator==(const ScheduleAttributes& other) const;
};

// What they mean.
struct Schedule {
    ScheduleAttributes attributes;
    executor::Plan plan;
    std::vector<ov::PartialShape> input_shapes;
    std::vector<ov::element::Type> output_types;
};

// Whether the CPU plugin hands tensors of this type to an op of an extension as they are. With any other it
// converts what the op reads and does not convert back what the op writes.
bool can_cross(const ov::element::Type& type);

// Throws ov::Exception in one sentence where an attribute is malformed or does not fit the others.
Schedule decode(const ScheduleAttributes& attributes);

}  // namespace ov_autoplace
