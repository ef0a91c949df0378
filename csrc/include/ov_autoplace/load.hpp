// Many requests in flight: how many of them a second compiled models finish.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ov_autoplace/profiler.hpp"
#include "ov_autoplace/race.hpp"

namespace ov_autoplace {

// A closed loop: `requests` requests, each of which begins anew as soon as it has finished.
struct Load {
    // What the requests belong to, in turns: compiled models, which may be copies of one another or run on
    // different devices. Not empty.
    std::vector<std::shared_ptr<Executable>> members;
    std::size_t requests = 1;
    // How a program calls: a thread per request that waits in infer(), or one thread that starts whichever
    // request a callback has told to be idle, as OpenVINO's AsyncInferQueue and benchmark_app do.
    bool asynchronous = false;
};

// Each request runs at least so often in a sample, however long it takes.
inline constexpr std::size_t kFewestOfARequest = 2;

inline constexpr double kLoadSampleSeconds = 0.03;

// Seconds per finished request of a load that runs for about `seconds`: the reciprocal of its rate. Every
// request has run once before the clock starts. What a device throws ends the load and is thrown as
// ProfilerError.
double load_seconds(const Load& load, double seconds);

// Races loads as compiled models are raced (profiler.hpp): in turns, a sample being what load_seconds says of
// `sample_seconds`.
RaceResult race_loads(const std::vector<Load>& loads, const RaceOptions& options, double sample_seconds,
                      const RaceCheckpoint& checkpoint, volatile std::int64_t* current = nullptr);

}  // namespace ov_autoplace
