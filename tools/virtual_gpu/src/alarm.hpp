// Calls at given times, made by a thread of their own that sleeps in between.
#pragma once

#include <functional>

#include "pace.hpp"

namespace virtual_gpu {

void call_at(Nanoseconds time, std::function<void()> call);

}  // namespace virtual_gpu
