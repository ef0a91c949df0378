// When submodels run on lanes that work at once: a list schedule.
//
// A lane that is free takes, of its submodels whose inputs have all arrived, the one with the longest way to
// the end of the model; of equal ones the first. (Graham, "Bounds on Multiprocessing Timing Anomalies", 1969;
// the way to the end is the upward rank of Topcuoglu et al., 2002.)
// While two or more lanes compute, each second of work takes `corun_factor` seconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ov_autoplace/submodels.hpp"

namespace ov_autoplace {

struct SubmodelTimes {
    std::vector<double> start, finish;   // per submodel
    std::vector<std::int32_t> sequence;  // submodels in the order in which they start
    double makespan = 0;
};

// Owns all working memory, so every thread needs its own.
class ListScheduler {
public:
    // Throws std::invalid_argument for a factor below 1.
    ListScheduler(std::int32_t lanes, double corun_factor);

    // Schedules a graph that has an order; the first submodel starts at `begin`.
    void schedule(const SubmodelGraph& graph, double begin, SubmodelTimes& times);

    // Which submodels can be one for nothing: neighbours on a lane, where the inputs of all have arrived when
    // the first starts, and no other lane takes an output of theirs before the last finishes. Nobody starts
    // later for it, and launches are saved. Into `joined` a number per submodel; returns how many they are.
    std::int32_t join_idle_cuts(const SubmodelGraph& graph, const SubmodelTimes& times,
                                std::vector<std::int32_t>& joined);

private:
    void rank_upward(const SubmodelGraph& graph);
    void arrive(std::int32_t submodel);
    void finish(const SubmodelGraph& graph, std::int32_t lane, double now);
    void change_pace(double now, double pace);

    struct Run {  // submodels of a lane that are to be one
        std::int32_t number = -1;
        double start = 0;     // of its first
        double deadline = 0;  // when another lane takes the first of its outputs, less the transfer
    };

    std::int32_t m_lanes;
    double m_corun_factor;
    double m_pace = 1;
    std::vector<double> m_rank, m_ready;
    std::vector<std::int32_t> m_waits;
    std::vector<std::pair<double, std::int32_t>> m_arriving;              // a heap, the earliest first
    std::vector<std::vector<std::pair<double, std::int32_t>>> m_waiting;  // per lane a heap by rank
    std::vector<std::int32_t> m_running;                                  // per lane, -1 = it is free
    std::vector<double> m_finish;                                         // of what runs on each lane
    std::vector<Run> m_runs;
};

}  // namespace ov_autoplace
