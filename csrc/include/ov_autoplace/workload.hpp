// Several compiled models at once, as the programs of an application call them.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "ov_autoplace/profiler.hpp"

namespace ov_autoplace {

// After an inference of one model, another one is run: `times` inferences on average, in the same thread. A
// fraction is spread evenly over the requests, so 2.5 are two and three in turns.
struct WorkloadLink {
    std::size_t from = 0;
    std::size_t to = 0;
    double times = 1.0;
};

// Requests that begin with one model and go on as the links say.
struct WorkloadSource {
    std::size_t model = 0;
    // Threads that run requests, each from its beginning to its end.
    std::size_t callers = 1;
    // When requests should begin, in seconds after the start, in order. Without any, it is a closed loop:
    // each caller begins one as soon as its last one has ended.
    bool is_open = false;
    std::vector<double> arrivals;
};

struct Workload {
    // The copies of each model: the callers share them out. None is empty.
    std::vector<std::vector<std::shared_ptr<Executable>>> models;
    std::vector<WorkloadLink> links;  // without a cycle
    std::vector<WorkloadSource> sources;
    // One thread runs all requests, one after the other: those of open sources when they are due, closed
    // loops in between in turns.
    bool in_turn = false;
};

// One inference, for a picture: times are in seconds after the start.
struct WorkloadSpan {
    std::size_t model;
    std::size_t caller;
    double begin;
    double end;
    int processor;  // on which the caller was at the end
};

struct WorkloadOutcome {
    struct Source {
        // Of each request, in seconds, from when it should have begun; infinite for those of an open source
        // that could not begin within twice the time.
        std::vector<double> latencies;
        double rate = 0;  // finished requests per second
    };
    struct Model {
        std::size_t inferences = 0;
        double busy_seconds = 0;  // within inferences, by all callers
    };
    std::vector<Source> sources;
    std::vector<Model> models;
    std::vector<WorkloadSpan> spans;
    double seconds = 0;      // that it was counted for
    double cpu_seconds = 0;  // of all threads of the process meanwhile
};

// Each caller of a closed loop finishes so many requests, however long they take.
inline constexpr std::size_t kFewestOfACaller = 2;

// Runs everything for about `seconds`. Every caller has run each of its models once before the clock starts,
// and goes on until everybody is done, so that nobody is counted while others rest. What a device throws ends
// it and is thrown as ProfilerError.
WorkloadOutcome run_workload(const Workload& workload, double seconds, bool with_spans);

}  // namespace ov_autoplace
