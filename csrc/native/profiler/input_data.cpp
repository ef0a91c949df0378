#include "input_data.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <openvino/core/type/element_type_traits.hpp>
#include <stdexcept>
#include <string>

namespace ov_autoplace {
namespace {

template <typename T>
void fill_real(ov::Tensor& tensor, std::mt19937_64& generator) {
    std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
    std::generate_n(tensor.data<T>(), tensor.get_size(), [&] { return static_cast<T>(uniform(generator)); });
}

template <typename T>
void fill_integer(ov::Tensor& tensor, std::int64_t high, std::mt19937_64& generator) {
    const std::uint64_t largest = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
    const std::uint64_t top = std::min(static_cast<std::uint64_t>(high - 1), largest);
    std::uniform_int_distribution<std::uint64_t> uniform(0, top);
    std::generate_n(tensor.data<T>(), tensor.get_size(), [&] { return static_cast<T>(uniform(generator)); });
}

// Short decimal numbers: text like any other, and what an op that reads numbers out of text can read.
void fill_strings(ov::Tensor& tensor, std::mt19937_64& generator) {
    std::uniform_int_distribution<std::int32_t> uniform(0, 99999);
    std::generate_n(tensor.data<std::string>(), tensor.get_size(),
                    [&] { return std::to_string(uniform(generator)); });
}

}  // namespace

void fill_tensor(ov::Tensor& tensor, std::int64_t high, std::mt19937_64& generator) {
    if (!tensor.is_continuous()) {
        throw std::invalid_argument("has a tensor with strides, which the profiler cannot fill");
    }
    if (high < 1) {
        throw std::invalid_argument("has the upper bound " + std::to_string(high) +
                                    "; it must be at least 1");
    }
    const auto type = tensor.get_element_type();
    switch (type) {
        case ov::element::f16:
            return fill_real<ov::float16>(tensor, generator);
        case ov::element::bf16:
            return fill_real<ov::bfloat16>(tensor, generator);
        case ov::element::f32:
            return fill_real<float>(tensor, generator);
        case ov::element::f64:
            return fill_real<double>(tensor, generator);
        case ov::element::f8e4m3:
            return fill_real<ov::float8_e4m3>(tensor, generator);
        case ov::element::f8e5m2:
            return fill_real<ov::float8_e5m2>(tensor, generator);
        case ov::element::i8:
            return fill_integer<std::int8_t>(tensor, high, generator);
        case ov::element::i16:
            return fill_integer<std::int16_t>(tensor, high, generator);
        case ov::element::i32:
            return fill_integer<std::int32_t>(tensor, high, generator);
        case ov::element::i64:
            return fill_integer<std::int64_t>(tensor, high, generator);
        case ov::element::u8:
            return fill_integer<std::uint8_t>(tensor, high, generator);
        case ov::element::u16:
            return fill_integer<std::uint16_t>(tensor, high, generator);
        case ov::element::u32:
            return fill_integer<std::uint32_t>(tensor, high, generator);
        case ov::element::u64:
            return fill_integer<std::uint64_t>(tensor, high, generator);
        case ov::element::boolean: {
            std::bernoulli_distribution coin;
            std::generate_n(tensor.data<char>(), tensor.get_size(),
                            [&] { return static_cast<char>(coin(generator)); });
            return;
        }
        case ov::element::string:
            return fill_strings(tensor, generator);
        default:
            // Packed types (u1, i4, nf4, ...): all-zero bits are a valid value of each.
            std::memset(tensor.data(), 0, tensor.get_byte_size());
    }
}

}  // namespace ov_autoplace
