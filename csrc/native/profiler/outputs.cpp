#include "outputs.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>

#include "profiler.hpp"

namespace ov_autoplace {
namespace {

// A tensor as it is kept: floats, or elements that are equal or not.
struct Values {
    std::uint64_t element_bytes = 0;  // 0 = floats
    std::vector<std::uint64_t> shape;
    const char* data = nullptr;
    std::uint64_t bytes = 0;
    ov::Tensor dense;         // what `data` points to, unless it is
    std::vector<char> owned;  // this
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

}  // namespace ov_autoplace
