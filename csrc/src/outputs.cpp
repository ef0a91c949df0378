#include "ov_autoplace/outputs.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>

#include "ov_autoplace/profiler_error.hpp"

namespace ov_autoplace {
namespace {

// A tensor as it is compared: floats, or elements that are equal or not.
struct Values {
    std::uint64_t element_bytes = 0;  // 0 = floats
    std::vector<std::uint64_t> shape;
    const char* data = nullptr;
    std::uint64_t bytes = 0;
    ov::Tensor dense;         // what `data` points to, unless it is
    std::vector<char> owned;  // this

    std::uint64_t size() const { return bytes / (element_bytes == 0 ? sizeof(float) : element_bytes); }
};

template <typename T>
void to_floats(const ov::Tensor& tensor, Values& values) {
    values.owned.resize(tensor.get_size() * sizeof(float));
    const T* const from = tensor.data<const T>();
    for (std::size_t i = 0; i < tensor.get_size(); ++i) {
        const float value = static_cast<float>(from[i]);
        std::memcpy(values.owned.data() + i * sizeof(float), &value, sizeof(float));
    }
}

void to_hashes(const ov::Tensor& tensor, Values& values) {
    values.owned.resize(tensor.get_size() * sizeof(std::size_t));
    const std::string* const from = tensor.data<const std::string>();
    for (std::size_t i = 0; i < tensor.get_size(); ++i) {
        const std::size_t hash = std::hash<std::string>{}(from[i]);
        std::memcpy(values.owned.data() + i * sizeof(hash), &hash, sizeof(hash));
    }
    values.element_bytes = sizeof(std::size_t);
}

Values values_of(const ov::Tensor& tensor) {
    Values values;
    const ov::Shape shape = tensor.get_shape();
    values.shape.assign(shape.begin(), shape.end());
    values.dense = tensor;
    if (!tensor.is_continuous()) {
        values.dense = ov::Tensor(tensor.get_element_type(), shape);
        tensor.copy_to(values.dense);
    }
    switch (tensor.get_element_type()) {
        case ov::element::f32:
            values.data = static_cast<const char*>(values.dense.data());
            values.bytes = values.dense.get_byte_size();
            return values;
        case ov::element::f16:
            to_floats<ov::float16>(values.dense, values);
            break;
        case ov::element::bf16:
            to_floats<ov::bfloat16>(values.dense, values);
            break;
        case ov::element::f64:
            to_floats<double>(values.dense, values);
            break;
        case ov::element::f8e4m3:
            to_floats<ov::float8_e4m3>(values.dense, values);
            break;
        case ov::element::f8e5m2:
            to_floats<ov::float8_e5m2>(values.dense, values);
            break;
        case ov::element::string:
            to_hashes(values.dense, values);
            break;
        default:  // types of less than a byte are compared byte by byte
            values.element_bytes = std::max<std::size_t>(1, tensor.get_element_type().bitwidth() / 8);
            values.data = static_cast<const char*>(values.dense.data());
            values.bytes = values.dense.get_byte_size();
            return values;
    }
    values.data = values.owned.data();
    values.bytes = values.owned.size();
    return values;
}

void write_number(std::ofstream& file, std::uint64_t number) {
    file.write(reinterpret_cast<const char*>(&number), sizeof(number));
}

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
    values.owned.resize(read_count(file));
    file.read(values.owned.data(), static_cast<std::streamsize>(values.owned.size()));
    values.data = values.owned.data();
    values.bytes = values.owned.size();
    return values;
}

float float_at(const Values& values, std::uint64_t i) {
    float value;
    std::memcpy(&value, values.data + i * sizeof(float), sizeof(float));
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
    if (one.element_bytes != other.element_bytes || one.shape != other.shape || one.bytes != other.bytes) {
        return kUnrelated;
    }
    if (one.element_bytes == 0) {
        return float_difference(one, other, smallest);
    }
    std::uint64_t unequal = 0;
    for (std::uint64_t at = 0; at + one.element_bytes <= one.bytes; at += one.element_bytes) {
        unequal += std::memcmp(one.data + at, other.data + at, one.element_bytes) != 0;
    }
    return one.size() == 0 ? 0 : static_cast<double>(unequal) / static_cast<double>(one.size());
}

}  // namespace

void save_outputs(const std::vector<ov::Tensor>& outputs, const std::string& path) {
    std::ofstream file(path, std::ios::binary);
    write_number(file, outputs.size());
    for (const auto& output : outputs) {
        const Values values = values_of(output);
        write_number(file, values.element_bytes);
        write_number(file, values.shape.size());
        for (const auto size : values.shape) {
            write_number(file, size);
        }
        write_number(file, values.bytes);
        file.write(values.data, static_cast<std::streamsize>(values.bytes));
    }
    file.close();
    if (!file) {
        throw ProfilerError("the outputs cannot be written to " + path);
    }
}

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
