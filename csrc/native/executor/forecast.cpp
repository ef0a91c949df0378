#include "forecast.hpp"

#include <algorithm>

namespace ov_autoplace::executor {
namespace {

constexpr uint32_t looked_at_every = 8;
constexpr double fading = 0.99;

}  // namespace

// Two threads that write at once may lose one of the values, which does no harm.
void Forecast::blend(std::atomic<double>& known, double latest) {
    const double before = known.load(std::memory_order_relaxed);
    known.store(before == 0 ? latest : (before + latest) / 2, std::memory_order_relaxed);
}

// Of times that are far too long now and then, because the system did something else.
void Forecast::learn_low(std::atomic<double>& known, double latest) {
    const double before = known.load(std::memory_order_relaxed);
    known.store(std::min((before + latest) / 2, 1.1 * before), std::memory_order_relaxed);
}

void Forecast::learn(const Context& context) {
    const auto run = m_runs.fetch_add(1, std::memory_order_relaxed);
    if (run > looked_at_every && run % looked_at_every != 0) return;
    std::vector<double> end(m_plan.submodels.size());
    double work = 0;
    for (size_t i = 0; i < end.size(); ++i) {
        const auto& stay = context.stay(i);
        const double seconds = Seconds(stay.finish - stay.start).count();
        work += seconds;
        for (const auto& source : m_plan.submodels[i].inputs) {
            if (source.submodel == Source::data) continue;
            end[i] = std::max(end[i], end[static_cast<size_t>(source.submodel)]);
        }
        end[i] += seconds;
    }
    blend(m_work, work);
    blend(m_span, *std::max_element(end.begin(), end.end()));
}

bool Forecast::pays(size_t threads) {
    const double work = m_work.load(std::memory_order_relaxed);
    if (work == 0) return true;  // Nothing is known yet.
    const double delay = m_delay.load(std::memory_order_relaxed);
    const double shared = std::max(0.0, work - delay) / static_cast<double>(threads);
    const double parallel = std::max(m_span.load(std::memory_order_relaxed), std::min(work, delay) + shared);
    if (parallel + m_effort.load(std::memory_order_relaxed) < work) return true;
    m_delay.store(fading * delay, std::memory_order_relaxed);
    return false;
}

}  // namespace ov_autoplace::executor
