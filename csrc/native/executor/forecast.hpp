// Whether a run is worth waking a parked thread for.
//
// Waking costs the one who wakes (35 us on a virtual machine), and the woken comes late (100 us there). A run
// that is over by then is slower for it. Where runs follow each other it pays all the same, as the thread
// then stays awake; after a pause it depends on how long the run takes, which earlier ones have shown.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "context.hpp"

namespace ov_autoplace::executor {

class Forecast {
public:
    using Seconds = std::chrono::duration<double>;

    explicit Forecast(const Plan& plan) : m_plan(plan) {}

    // From a run that has ended, of which one in a few is looked at.
    void learn(const Context& context);
    // What waking a thread took the one who did it, and how much later the thread was there.
    void learn_waking(Seconds effort) { learn_low(m_effort, effort.count()); }
    void learn_delay(Seconds delay) { learn_low(m_delay, delay.count()); }

    // Whether a run alone gains more by so many threads, the caller included, than waking costs. What is
    // known of waking fades with each refusal, so that it is tried again now and then.
    bool pays(size_t threads);

private:
    static void blend(std::atomic<double>& known, double latest);
    static void learn_low(std::atomic<double>& known, double latest);

    const Plan& m_plan;
    std::atomic<uint32_t> m_runs{0};
    // Seconds: all submodels one after the other, the longest path through them; 0 before the first run.
    std::atomic<double> m_work{0}, m_span{0};
    // Seconds that waking takes its thread, and after which the other one is there.
    std::atomic<double> m_effort{5e-6}, m_delay{50e-6};
};

}  // namespace ov_autoplace::executor
