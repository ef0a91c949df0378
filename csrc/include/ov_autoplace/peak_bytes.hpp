// How much memory the results of a graph take that are alive at the same time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ov_autoplace {

// Results that are alive from one of `moments` to another, both included. What makes or reads a result holds
// it: its holders, as CSR.
struct ResultsView {
    std::int32_t moments = 0;
    std::size_t results = 0;
    const double* bytes = nullptr;
    const std::int32_t* first = nullptr;
    const std::int32_t* last = nullptr;
    const std::int32_t* offsets = nullptr;
    const std::int32_t* holders = nullptr;
};

// The most bytes that each device holds at one moment, for each of `count` assignments, on all cores: a
// device holds a result, once, if a holder is there. `assignments` has a device below `devices` for each of
// `nodes` holders, `peaks` a place for each device. Throws std::invalid_argument for a moment, a holder or a
// device that does not exist.
void peak_bytes(const ResultsView& results, const std::int32_t* assignments, std::size_t count,
                std::size_t nodes, std::int32_t devices, double* peaks);

}  // namespace ov_autoplace
