// The statistics of the race.
//
// In every round each candidate still in the race runs once, in an order drawn anew, so that drift and
// disturbances of the machine hit all alike. Candidate c is compared with candidate b by the sign of their
// difference in each round: no assumption about the distribution of the noise, which on a real machine is
// skewed and has far outliers.
//
// Looking after every round and stopping at the first "significant" result makes an ordinary test err far
// more often than it says. This one is valid at every look: under the hypothesis "c is slower than b in at
// most half of the rounds" the likelihood ratio of the signs, mixed over a uniform prior on the probability p
// in (1/2, 1), is a supermartingale of mean at most 1, so it ever reaches 1/a with probability at most a
// (Ville's inequality; the mixture is H. Robbins, "Statistical methods related to the law of the iterated
// logarithm", Ann. Math. Stat. 41, 1970; see also Waudby-Smith and Ramdas, "Estimating means of bounded
// random variables by betting", JRSS B 86, 2024). With a = (1 - confidence) / number of ordered pairs, no
// candidate is dropped wrongly with the asked confidence, whichever pairs are looked at and when.
#include "ov_autoplace/race.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <limits>
#include <numeric>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>

#include "ov_autoplace/checkpoint.hpp"
#include "ov_autoplace/profiler_error.hpp"

namespace ov_autoplace {
namespace {

using Clock = std::chrono::steady_clock;

// The sign test needs a dozen rounds whatever the distance is. A candidate whose fastest sample is this much
// slower than the leader's slowest one leaves after the least number of rounds.
constexpr double kHopelessRatio = 1.5;

constexpr std::size_t kMostRounds = 1'000'000'000'000;

double median(std::vector<double> values) {
    const std::size_t middle = values.size() / 2;
    std::nth_element(values.begin(), values.begin() + middle, values.end());
    if (values.size() % 2 == 1) {
        return values[middle];
    }
    return (values[middle] + *std::max_element(values.begin(), values.begin() + middle)) / 2;
}

void check(const RaceOptions& options, std::size_t candidates) {
    if (candidates == 0) {
        throw std::invalid_argument("a race needs at least one candidate");
    }
    if (!(options.budget_seconds >= 0)) {
        throw std::invalid_argument("the budget of a race must not be negative");
    }
    if (options.min_rounds < 1 || options.max_rounds < options.min_rounds) {
        throw std::invalid_argument("a race needs 1 <= min_rounds <= max_rounds");
    }
    if (!(options.confidence > 0 && options.confidence < 1)) {
        throw std::invalid_argument("the confidence of a race must be between 0 and 1, both excluded");
    }
    if (!options.names.empty() && options.names.size() != candidates) {
        throw std::invalid_argument("a race needs one name per candidate, or none");
    }
    if (!(options.margin >= 0)) {
        throw std::invalid_argument("the margin of a race must not be negative");
    }
}

class Race {
public:
    Race(std::size_t candidates, const Sampler& sampler, const RaceOptions& options,
         const RaceCheckpoint& checkpoint)
        : m_sampler(sampler), m_options(options), m_checkpoint(checkpoint), m_running(candidates) {
        check(options, candidates);
        m_result.entries.resize(candidates);
        std::iota(m_running.begin(), m_running.end(), std::size_t{0});
        const auto pairs = static_cast<double>(std::max<std::size_t>(1, candidates * (candidates - 1)));
        m_log_threshold = std::log(pairs / (1 - options.confidence));
    }

    RaceResult run() {
        while (m_result.stopped.empty()) {
            run_round();
            if (m_result.rounds >= m_options.min_rounds) {
                drop_losers();
            }
            m_result.stopped = reason_to_stop();
        }
        m_result.best = leader();
        m_result.seconds = elapsed();
        return std::move(m_result);
    }

private:
    double elapsed() const { return std::chrono::duration<double>(Clock::now() - m_start).count(); }

    const std::vector<double>& samples(std::size_t candidate) const {
        return m_result.entries[candidate].samples;
    }

    void drop(std::size_t candidate, std::string reason) {
        m_result.entries[candidate].dropped = std::move(reason);
        m_running.erase(std::find(m_running.begin(), m_running.end(), candidate));
    }

    void run_round() {
        std::vector<std::size_t> order = m_running;
        std::shuffle(order.begin(), order.end(), m_generator);
        for (const std::size_t candidate : order) {
            try {
                const double seconds = m_sampler(candidate);
                if (!std::isfinite(seconds) || seconds < 0) {
                    throw ProfilerError("a sample of " + std::to_string(seconds) + " seconds");
                }
                m_result.entries[candidate].samples.push_back(seconds);
            } catch (const ProfilerError& error) {
                drop(candidate, std::string("failed: ") + error.what());
                if (m_running.empty()) {
                    throw;
                }
            }
            if (m_checkpoint && m_timer.due()) {
                m_checkpoint({m_result.rounds, m_running.size(), elapsed()});
            }
        }
        ++m_result.rounds;
    }

    std::size_t leader() const {
        return *std::min_element(m_running.begin(), m_running.end(), [&](std::size_t a, std::size_t b) {
            return median(samples(a)) < median(samples(b));
        });
    }

    void drop_losers() {
        const std::size_t best = leader();
        const std::vector<std::size_t> running = m_running;
        for (const std::size_t candidate : running) {
            if (candidate != best && is_slower(candidate, best)) {
                drop(candidate, describe(candidate, best));
            }
        }
    }

    bool is_slower(std::size_t candidate, std::size_t best) const {
        const std::vector<double>& mine = samples(candidate);
        const std::vector<double>& its = samples(best);
        if (*std::min_element(mine.begin(), mine.end()) >
            kHopelessRatio * (1 + m_options.margin) * *std::max_element(its.begin(), its.end())) {
            return true;
        }
        std::size_t losses = 0;
        std::size_t wins = 0;
        for (std::size_t round = 0; round < mine.size(); ++round) {
            const double allowed = its[round] * (1 + m_options.margin);
            losses += mine[round] > allowed ? 1 : 0;
            wins += mine[round] < allowed ? 1 : 0;
        }
        return losses > wins && log_evidence_slower(losses, wins) >= m_log_threshold;
    }

    std::string describe(std::size_t candidate, std::size_t best) const {
        std::ostringstream text;
        const std::vector<std::string>& names = m_options.names;
        text << std::fixed << std::setprecision(1) << "slower than "
             << (names.empty() ? "candidate " + std::to_string(best) : names[best]) << " by "
             << 100 * (median(samples(candidate)) / median(samples(best)) - 1) << " % after "
             << m_result.rounds << " rounds";
        return text.str();
    }

    std::string reason_to_stop() const {
        if (m_running.size() == 1 && m_result.rounds >= m_options.min_rounds) {
            return "one left";
        }
        if (m_result.rounds >= m_options.max_rounds) {
            return "max rounds";
        }
        return elapsed() >= m_options.budget_seconds ? "budget" : "";
    }

    const Sampler& m_sampler;
    const RaceOptions& m_options;
    const RaceCheckpoint& m_checkpoint;
    CheckpointTimer m_timer;
    std::vector<std::size_t> m_running;
    RaceResult m_result;
    double m_log_threshold = 0;
    std::mt19937_64 m_generator{m_options.seed};
    Clock::time_point m_start = Clock::now();
};

}  // namespace

double log_evidence_slower(std::size_t losses, std::size_t wins) {
    if (losses > kMostRounds || wins > kMostRounds) {
        throw std::invalid_argument("the evidence is known for at most " + std::to_string(kMostRounds) +
                                    " losses and as many wins");
    }
    // With n = losses + wins: 2 * integral of p^losses (1 - p)^wins over (1/2, 1), divided by (1/2)^n. The
    // integral is the Beta function times the upper tail of the Beta distribution, which is P(Binomial(n + 1,
    // 1/2) <= losses).
    const double n = static_cast<double>(losses + wins), k = static_cast<double>(losses);
    const double log_beta = std::lgamma(k + 1) + std::lgamma(n - k + 1) - std::lgamma(n + 2);
    const auto log_binomial = [n](double successes) {
        return std::lgamma(n + 2) - std::lgamma(successes + 1) - std::lgamma(n + 2 - successes) -
               (n + 1) * std::log(2.0);
    };
    // The tail that the mean is not in: its terms fall ever faster, so a few times sqrt(n) of them count.
    const bool is_lower = losses <= wins;
    const double first = is_lower ? k : k + 1;
    double term = 1, sum = 1;
    for (double x = first; term > sum * std::numeric_limits<double>::epsilon();
         x += is_lower ? -1 : 1, sum += term) {
        term *= is_lower ? x / (n + 2 - x) : (n + 1 - x) / (x + 1);
    }
    const double log_tail = log_binomial(first) + std::log(sum);
    return (n + 1) * std::log(2.0) + log_beta + (is_lower ? log_tail : std::log1p(-std::exp(log_tail)));
}

RaceResult race(std::size_t candidates, const Sampler& sampler, const RaceOptions& options,
                const RaceCheckpoint& checkpoint) {
    return Race(candidates, sampler, options, checkpoint).run();
}

}  // namespace ov_autoplace
