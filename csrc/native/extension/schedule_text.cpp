#include "schedule_text.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <tuple>

#include "../executor/refuse.hpp"

namespace ov_autoplace {
namespace {

using executor::refuse;

std::string percent_decoded(const std::string& text, const char* attribute) {
    const auto digit = [](char c) {
        const auto lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        return std::isdigit(static_cast<unsigned char>(c)) ? c - '0' : lower - 'a' + 10;
    };
    std::string plain;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            plain += text[i];
            continue;
        }
        const bool complete = i + 2 < text.size() && std::isxdigit(static_cast<unsigned char>(text[i + 1])) &&
                              std::isxdigit(static_cast<unsigned char>(text[i + 2]));
        if (!complete) {
            refuse("a schedule's '", attribute,
                   "' has a '%' without two hexadecimal digits behind it: ", text);
        }
        plain += static_cast<char>(16 * digit(text[i + 1]) + digit(text[i + 2]));
        i += 2;
    }
    return plain;
}

executor::Properties properties_of(const std::string& text) {
    executor::Properties properties;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ';');) {
        if (part.empty()) continue;
        const auto equals = part.find('=');
        if (equals == std::string::npos || equals == 0) {
            refuse("a schedule's 'lane_properties' are KEY=VALUE joined by ';', which this is not: ", part);
        }
        properties[percent_decoded(part.substr(0, equals), "lane_properties")] =
            percent_decoded(part.substr(equals + 1), "lane_properties");
    }
    return properties;
}

// Numbers one after the other; asking for more than there are is refused.
class Numbers {
public:
    Numbers(const std::vector<int64_t>& values, const char* attribute)
        : m_values(values), m_attribute(attribute) {}

    int64_t next() {
        if (m_position == m_values.size()) {
            refuse("a schedule's '", m_attribute, "' ends after ", m_values.size(), " numbers, too early");
        }
        return m_values[m_position++];
    }
    size_t next_count() {
        const auto value = next();
        if (value < 0 || static_cast<size_t>(value) > m_values.size()) {
            refuse("a schedule's '", m_attribute, "' has ", value, " where a count is expected");
        }
        return static_cast<size_t>(value);
    }
    executor::Source next_source() {
        const auto submodel = next(), port = next();
        if (port < 0) refuse("a schedule's '", m_attribute, "' has the port ", port);
        return {submodel, static_cast<size_t>(port)};
    }
    bool is_empty() const { return m_position == m_values.size(); }
    void end() const {
        if (is_empty()) return;
        refuse("a schedule's '", m_attribute, "' has ", m_values.size(), " numbers, of which ",
               m_values.size() - m_position, " are too many");
    }

private:
    const std::vector<int64_t>& m_values;
    const char* m_attribute;
    size_t m_position = 0;
};

void expect(size_t expected, size_t actual, const char* attribute) {
    if (expected == actual) return;
    refuse("a schedule's '", attribute, "' has ", actual, " values where ", expected, " are expected");
}

std::vector<ov::PartialShape> shapes_of(const std::vector<int64_t>& flat, size_t count,
                                        const char* attribute) {
    Numbers numbers(flat, attribute);
    std::vector<ov::PartialShape> shapes;
    for (size_t i = 0; i < count; ++i) {
        const auto rank = numbers.next();
        if (rank == -1) {
            shapes.push_back(ov::PartialShape::dynamic());
            continue;
        }
        // Other counts are guarded by the numbers that follow; a rank of 0 has none.
        if (rank < 0 || rank > 64) refuse("a schedule's '", attribute, "' has the rank ", rank);
        std::vector<ov::Dimension> dimensions;
        for (int64_t axis = 0; axis < rank; ++axis) {
            const auto dimension = numbers.next();
            if (dimension < -1) refuse("a schedule's '", attribute, "' has the dimension ", dimension);
            dimensions.emplace_back(dimension);
        }
        shapes.emplace_back(std::move(dimensions));
    }
    numbers.end();
    return shapes;
}

ov::element::Type type_of(const std::string& name) {
    for (const auto& type : {ov::element::f32, ov::element::i32, ov::element::i8, ov::element::u8}) {
        if (type.to_string() == name) return type;
    }
    refuse("a schedule's 'output_types' has '", name, "', and only f32, i32, i8 and u8 can cross it");
}

}  // namespace

bool ScheduleAttributes::operator==(const ScheduleAttributes& other) const {
    const auto all = [](const ScheduleAttributes& it) {
        return std::tie(it.format, it.data_inputs, it.lanes, it.lane_properties, it.submodels,
                        it.output_types, it.lane_of, it.rank, it.sources, it.results, it.input_shapes,
                        it.output_shapes);
    };
    return all(*this) == all(other);
}

bool can_cross(const ov::element::Type& type) {
    return type == ov::element::f32 || type == ov::element::i32 || type == ov::element::i8 ||
           type == ov::element::u8;
}

Schedule decode(const ScheduleAttributes& attributes) {
    const auto& a = attributes;
    if (a.format != 1) {
        refuse("a schedule has format ", a.format,
               " and this library knows format 1; make it again with this version of ov-autoplace");
    }
    if (a.data_inputs < 0 || a.data_inputs > 1'000'000) {
        refuse("a schedule's 'data_inputs' is ", a.data_inputs);
    }
    Schedule schedule{a, {}, {}, {}};
    auto& plan = schedule.plan;
    plan.data_inputs = static_cast<size_t>(a.data_inputs);
    expect(a.lanes.size(), a.lane_properties.size(), "lane_properties");
    for (size_t i = 0; i < a.lanes.size(); ++i) {
        plan.lanes.push_back({percent_decoded(a.lanes[i], "lanes"), properties_of(a.lane_properties[i])});
    }
    expect(a.submodels.size(), a.lane_of.size(), "lane_of");
    expect(a.submodels.size(), a.rank.size(), "rank");
    Numbers sources(a.sources, "sources");
    for (size_t i = 0; i < a.submodels.size(); ++i) {
        executor::Submodel submodel{percent_decoded(a.submodels[i], "submodels"), 0, a.rank[i], {}};
        if (a.lane_of[i] < 0) refuse("a schedule's 'lane_of' has the lane ", a.lane_of[i]);
        submodel.lane = static_cast<size_t>(a.lane_of[i]);
        for (size_t left = sources.next_count(); left > 0; --left) {
            submodel.inputs.push_back(sources.next_source());
        }
        plan.submodels.push_back(std::move(submodel));
    }
    sources.end();
    Numbers results(a.results, "results");
    while (!results.is_empty()) plan.results.push_back(results.next_source());
    if (plan.results.empty()) refuse("a schedule needs an output, and has none");
    plan.result_shapes = shapes_of(a.output_shapes, plan.results.size(), "output_shapes");
    executor::check(plan);
    for (const auto& name : a.output_types) {
        schedule.output_types.push_back(type_of(percent_decoded(name, "output_types")));
    }
    expect(plan.results.size(), schedule.output_types.size(), "output_types");
    schedule.input_shapes = shapes_of(a.input_shapes, plan.data_inputs, "input_shapes");
    return schedule;
}

}  // namespace ov_autoplace
