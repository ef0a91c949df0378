// Finds the fastest of several candidates by running them in turns, and stops running those that are
// certainly slower.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ov_autoplace {

struct RaceOptions {
    double budget_seconds = 1.0;  // the race ends with the round in which the budget runs out
    std::size_t min_rounds = 5;   // nobody is dropped earlier
    std::size_t max_rounds = 1000;
    double confidence = 0.99;        // probability that no candidate is dropped wrongly, over the whole race
    double margin = 0.0;             // relative slowness that is worth dropping a candidate for
    std::uint64_t seed = 0;          // of the order of the candidates in each round
    std::vector<std::string> names;  // what to call the candidates; empty calls them by their numbers
};

struct RaceEntry {
    std::vector<double> samples;  // one per round that it took part in
    std::string dropped;          // why it left, empty if it stayed to the end
};

struct RaceResult {
    std::vector<RaceEntry> entries;  // one per candidate
    std::size_t best = 0;            // lowest median among those that stayed
    std::size_t rounds = 0;
    double seconds = 0.0;
    std::string stopped;  // "budget", "one left" or "max rounds"
};

struct RaceProgress {
    std::size_t rounds;   // finished so far
    std::size_t running;  // candidates that are left
    double seconds;
};

// Called now and then between samples; it interrupts the race by throwing.
using RaceCheckpoint = std::function<void(const RaceProgress&)>;

// Runs one candidate once and returns its time. Throwing ProfilerError, or a time that is negative or not
// finite, takes the candidate out of the race.
using Sampler = std::function<double(std::size_t candidate)>;

// Races `candidates` candidates. Throws std::invalid_argument for options out of range and ProfilerError when
// no candidate can be run.
RaceResult race(std::size_t candidates, const Sampler& sampler, const RaceOptions& options,
                const RaceCheckpoint& checkpoint);

// Logarithm of the evidence (an e-value) that one of two candidates is slower more often than not, after
// `losses` rounds in which it was slower and `wins` rounds in which it was faster; 1e12 of each at most.
double log_evidence_slower(std::size_t losses, std::size_t wins);

}  // namespace ov_autoplace
