// How far one answer of a model is from another one, both in files that the native part wrote.
#pragma once

#include <string>
#include <vector>

namespace ov_autoplace {

// Of two answers that have nothing in common: shapes differ, or one is finite where the other is not.
inline constexpr double kUnrelated = 2.0;

// How far each output in one file (profiler_api.h) is from that in another one, from 0 to kUnrelated. Of
// floating-point tensors it is the largest difference of two elements over the largest magnitude in either
// tensor, and at least `smallest`; NaN and infinity in the same places count as equal. Of others it is the
// share of elements that differ. Throws ProfilerError where a file cannot be read.
std::vector<double> output_differences(const std::string& path, const std::string& other, double smallest);

}  // namespace ov_autoplace
