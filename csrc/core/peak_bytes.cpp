#include "ov_autoplace/peak_bytes.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "ov_autoplace/batch.hpp"

namespace ov_autoplace {
namespace {

void check(const std::int32_t* values, std::size_t count, std::size_t end, const char* name) {
    for (std::size_t i = 0; i < count; ++i) {
        if (values[i] >= 0 && static_cast<std::size_t>(values[i]) < end) continue;
        throw std::invalid_argument(std::string(name) + " " + std::to_string(values[i]) +
                                    " does not exist; there are " + std::to_string(end));
    }
}

}  // namespace

void peak_bytes(const ResultsView& results, const std::int32_t* assignments, std::size_t count,
                std::size_t nodes, std::int32_t devices, double* peaks) {
    if (devices < 1) throw std::invalid_argument("there is no device");
    check(results.first, results.results, results.moments, "moment");
    check(results.last, results.results, results.moments, "moment");
    check(results.holders, results.offsets[results.results], nodes, "holder");
    check(assignments, count * nodes, devices, "device");
    const auto columns = static_cast<std::size_t>(devices);
    constexpr std::size_t additions_of_a_node = 100;  // in the time that a simulator takes for one
    const std::size_t cells = (static_cast<std::size_t>(results.moments) + 1) * columns;
    in_slices(count, (cells + results.results) / additions_of_a_node, 0, [&](const auto& take) {
        std::vector<double> change(cells), held(columns);
        std::vector<std::size_t> last_result(columns);
        for (std::size_t begin, end; take(begin, end);) {
            for (std::size_t row = begin; row < end; ++row) {
                const std::int32_t* device = assignments + row * nodes;
                std::fill(change.begin(), change.end(), 0.0);
                std::fill(last_result.begin(), last_result.end(), results.results);
                for (std::size_t r = 0; r < results.results; ++r) {
                    double* made = change.data() + results.first[r] * columns;
                    double* freed = change.data() + (results.last[r] + std::size_t{1}) * columns;
                    for (std::int32_t h = results.offsets[r]; h < results.offsets[r + 1]; ++h) {
                        const std::int32_t on = device[results.holders[h]];
                        if (last_result[on] == r) continue;
                        last_result[on] = r;
                        made[on] += results.bytes[r];
                        freed[on] -= results.bytes[r];
                    }
                }
                double* peak = peaks + row * columns;
                std::fill(peak, peak + columns, 0.0);
                std::fill(held.begin(), held.end(), 0.0);
                for (std::size_t i = 0; i < change.size(); i += columns) {
                    for (std::size_t d = 0; d < columns; ++d) {
                        held[d] += change[i + d];
                        peak[d] = std::max(peak[d], held[d]);
                    }
                }
            }
        }
    });
}

}  // namespace ov_autoplace
