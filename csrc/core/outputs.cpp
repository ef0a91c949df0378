#include "ov_autoplace/outputs.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>

#include "ov_autoplace/profiler_error.hpp"

namespace ov_autoplace {
namespace {

// A tensor as it is kept in a file: floats, or elements that are equal or not.
struct Values {
    std::uint64_t element_bytes = 0;  // 0 = floats
    std::vector<std::uint64_t> shape;
    std::vector<char> data;

    std::uint64_t size() const { return data.size() / (element_bytes == 0 ? sizeof(float) : element_bytes); }
};

std::uint64_t read_number(std::ifstream& file) {
    std::uint64_t number = 0;
    file.read(reinterpret_cast<char*>(&number), sizeof(number));
    return number;
}

// A number of things that follow, of which a file holds no more than it has bytes; else the file has failed.
std::uint64_t read_count(std::ifstream& file) {
    const std::uint64_t count = read_number(file);
    const auto here = file.tellg();
    file.seekg(0, std::ios::end);
    const auto end = file.tellg();
    file.seekg(here);
    if (!file || count > static_cast<std::uint64_t>(end)) {
        file.setstate(std::ios::failbit);
        return 0;
    }
    return count;
}

Values read_values(std::ifstream& file) {
    Values values;
    values.element_bytes = read_number(file);
    values.shape.resize(read_count(file));
    for (auto& size : values.shape) {
        size = read_number(file);
    }
    values.data.resize(read_count(file));
    file.read(values.data.data(), static_cast<std::streamsize>(values.data.size()));
    return values;
}

float float_at(const Values& values, std::uint64_t i) {
    float value;
    std::memcpy(&value, values.data.data() + i * sizeof(float), sizeof(float));
    return value;
}

double float_difference(const Values& one, const Values& other, double smallest) {
    float scale = 0;
    double most = 0;
    bool unrelated = false;
    for (std::uint64_t i = 0; i < one.size(); ++i) {
        const float a = float_at(one, i), b = float_at(other, i);
        if (std::isfinite(a) && std::isfinite(b)) {
            scale = std::max({scale, std::abs(a), std::abs(b)});
            most = std::max(most, std::abs(static_cast<double>(a) - b));
        } else {
            unrelated |= !(a == b || (std::isnan(a) && std::isnan(b)));
        }
    }
    return unrelated ? kUnrelated : most / std::max<double>(scale, smallest);
}

double difference(const Values& one, const Values& other, double smallest) {
    if (one.element_bytes != other.element_bytes || one.shape != other.shape ||
        one.data.size() != other.data.size()) {
        return kUnrelated;
    }
    if (one.element_bytes == 0) {
        return float_difference(one, other, smallest);
    }
    std::uint64_t unequal = 0;
    for (std::uint64_t at = 0; at + one.element_bytes <= one.data.size(); at += one.element_bytes) {
        unequal += std::memcmp(one.data.data() + at, other.data.data() + at, one.element_bytes) != 0;
    }
    return one.size() == 0 ? 0 : static_cast<double>(unequal) / static_cast<double>(one.size());
}

}  // namespace

std::vector<double> output_differences(const std::string& path, const std::string& other, double smallest) {
    std::ifstream one(path, std::ios::binary), two(other, std::ios::binary);
    const std::uint64_t count = read_count(one), others = read_count(two);
    std::vector<double> result(std::max(count, others), kUnrelated);
    for (std::size_t i = 0; i < std::min(count, others); ++i) {
        result[i] = difference(read_values(one), read_values(two), smallest);
    }
    if (!one || !two) {
        throw ProfilerError("the outputs cannot be read from " + (one ? other : path));
    }
    return result;
}

}  // namespace ov_autoplace
