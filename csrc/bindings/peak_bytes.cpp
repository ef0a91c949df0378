#include "ov_autoplace/peak_bytes.hpp"

#include <algorithm>

#include "arrays.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ov_autoplace;
using namespace ov_autoplace::bindings;

void init_peak_bytes(nb::module_& m) {
    m.def(
        "peak_bytes",
        [](std::int32_t moments, const Vector<double>& bytes, const Vector<std::int32_t>& first,
           const Vector<std::int32_t>& last, const Vector<std::int32_t>& offsets,
           const Vector<std::int32_t>& holders, const Matrix<std::int32_t>& assignments,
           std::int32_t devices) {
            const std::size_t results = bytes.shape(0), count = assignments.shape(0);
            check_size(first.shape(0), results, "first");
            check_size(last.shape(0), results, "last");
            check_size(offsets.shape(0), results + 1, "offsets");
            const auto* ends = offsets.data() + offsets.shape(0);
            if (moments < 0 || devices < 1 || offsets.data()[0] != 0 || !std::is_sorted(offsets.data(), ends))
                throw nb::value_error("there is no device, or no moment, or offsets do not ascend from 0");
            check_size(holders.shape(0), static_cast<std::size_t>(ends[-1]), "holders");
            std::vector<double> peaks(count * static_cast<std::size_t>(devices));
            {
                nb::gil_scoped_release unlocked;
                peak_bytes({moments, results, bytes.data(), first.data(), last.data(), offsets.data(),
                            holders.data()},
                           assignments.data(), count, assignments.shape(1), devices, peaks.data());
            }
            return to_numpy(std::move(peaks));
        },
        "moments"_a, "bytes"_a, "first"_a, "last"_a, "offsets"_a, "holders"_a, "assignments"_a, "devices"_a,
        "The most bytes of results that each device holds at one moment, ``float64[B * D]`` row by row, for\n"
        "each of B ``assignments`` (``int32[B, N]``) of N holders to D ``devices``.\n\n"
        "R results are alive from ``first`` to ``last`` of ``moments``, both included, on the devices of\n"
        "their holders, which ``offsets`` and ``holders`` list as CSR.");
}
