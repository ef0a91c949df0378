// NumPy arrays on their way in and out of the core.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ov_autoplace::bindings {

namespace nb = nanobind;

template <typename T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <typename T>
using NumpyVector = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>;

// A NumPy array that owns what was in `values`.
template <typename T>
NumpyVector<T> to_numpy(std::vector<T>&& values) {
    auto owned = std::make_unique<std::vector<T>>(std::move(values));
    T* data = owned->data();
    const std::size_t size = owned->size();
    nb::capsule owner(owned.release(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return NumpyVector<T>(data, {size}, owner);
}

template <typename T>
std::vector<T> to_vector(const Vector<T>& array) {
    return std::vector<T>(array.data(), array.data() + array.shape(0));
}

inline void check_size(std::size_t found, std::size_t expected, const char* name) {
    if (found != expected) {
        const std::string message = std::string(name) + " has " + std::to_string(found) +
                                    " entries instead of " + std::to_string(expected);
        throw nb::value_error(message.c_str());
    }
}

}  // namespace ov_autoplace::bindings
