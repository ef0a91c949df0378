#include "dispatch.hpp"

#include <sched.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <set>

namespace ov_autoplace::executor {

void Latch::lock() {
    while (m_taken.exchange(true, std::memory_order_acquire)) sched_yield();
}

Order::Order(const Plan& plan) : m_kind(first_copies(plan.lanes)), m_lanes_of_kind(plan.lanes.size()) {
    for (const auto kind : m_kind) ++m_lanes_of_kind[kind];
    const auto count = plan.submodels.size();
    m_by_rank.resize(count);
    m_position.resize(count);
    m_consumers.resize(count);
    std::iota(m_by_rank.begin(), m_by_rank.end(), 0U);
    std::stable_sort(m_by_rank.begin(), m_by_rank.end(), [&](uint32_t one, uint32_t other) {
        return plan.submodels[one].rank < plan.submodels[other].rank;
    });
    for (uint32_t i = 0; i < count; ++i) m_position[m_by_rank[i]] = i;
    for (uint32_t i = 0; i < count; ++i) {
        const auto& submodel = plan.submodels[i];
        m_lane.push_back(submodel.lane);
        std::set<int64_t> producers;
        for (const auto& source : submodel.inputs) {
            if (source.submodel != Source::data) producers.insert(source.submodel);
        }
        m_producers.push_back(static_cast<uint32_t>(producers.size()));
        for (const auto producer : producers) m_consumers[static_cast<size_t>(producer)].push_back(i);
    }
    m_threads = std::min(plan.lanes.size(), widest_level());
}

// The most submodels that are equally far from the inputs.
size_t Order::widest_level() const {
    std::vector<size_t> level(submodels()), count(submodels());
    for (size_t i = 0; i < submodels(); ++i) {
        ++count[level[i]];
        for (const auto consumer : m_consumers[i]) level[consumer] = std::max(level[consumer], level[i] + 1);
    }
    return *std::max_element(count.begin(), count.end());
}

Dispatch::Dispatch(const Order& order, Occupancy& occupancy)
    : m_order(order), m_occupancy(occupancy), m_words((order.submodels() + 31) / 32) {
    m_state.resize(m_words + order.lanes() + order.submodels());
    m_ready = m_state.data();
    m_running_of_kind = m_ready + m_words;
    m_missing = m_running_of_kind + order.lanes();
}

void Dispatch::start() {
    const std::lock_guard lock(m_latch);
    std::fill(m_ready, m_missing, 0U);
    std::copy(m_order.m_producers.begin(), m_order.m_producers.end(), m_missing);
    m_ready_now = 0;
    for (size_t i = 0; i < m_order.submodels(); ++i) {
        if (m_missing[i] == 0) set_ready(i);
    }
    m_left = static_cast<uint32_t>(m_order.submodels());
    m_running = 0;
    m_caller_parked = false;
    m_error = nullptr;
    publish();
}

void Dispatch::set_ready(size_t submodel) {
    const auto position = m_order.m_position[submodel];
    m_ready[position / 32] |= 1U << (position % 32);
    ++m_ready_now;
}

bool Dispatch::can_begin(size_t submodel) const {
    const auto kind = m_order.m_kind[m_order.m_lane[submodel]];
    return m_running_of_kind[kind] < m_order.m_lanes_of_kind[kind];
}

// Calls `visit` with ready submodels of lanes that are not busy, by rank, until it returns false.
template <class Visit>
void Dispatch::for_each_ready(const Visit& visit) const {
    for (size_t word = 0; word < m_words; ++word) {
        for (uint32_t bits = m_ready[word]; bits != 0; bits &= bits - 1) {
            const auto position = 32 * word + static_cast<size_t>(__builtin_ctz(bits));
            const size_t submodel = m_order.m_by_rank[position];
            if (can_begin(submodel) && !visit(submodel)) return;
        }
    }
}

size_t Dispatch::count_ready() const {
    size_t count = 0;
    if (m_ready_now > 0) for_each_ready([&](size_t) { return ++count > 0; });
    return count;
}

Step Dispatch::begin_best(size_t home, bool insist) {
    int best_distance = 3;
    size_t best = 0;
    const auto look = [&](size_t submodel) {
        const auto lane = m_order.m_lane[submodel];
        const int distance = lane == home ? 0 : m_order.m_kind[lane] == m_order.m_kind[home] ? 1 : 2;
        if (distance < best_distance && (insist || m_occupancy.is_free(submodel))) {
            best_distance = distance;
            best = submodel;
        }
        return best_distance > 0;
    };
    if (m_ready_now > 0) for_each_ready(look);
    if (best_distance == 3) return {};
    if (insist) {
        m_occupancy.enter(best);
    } else if (!m_occupancy.try_enter(best)) {
        return {};
    }
    const auto position = m_order.m_position[best];
    m_ready[position / 32] &= ~(1U << (position % 32));
    --m_ready_now;
    ++m_running_of_kind[m_order.m_kind[m_order.m_lane[best]]];
    ++m_running;
    return {static_cast<int>(best), count_ready(), false};
}

void Dispatch::release(size_t submodel) {
    m_occupancy.leave(submodel);
    --m_running_of_kind[m_order.m_kind[m_order.m_lane[submodel]]];
    --m_running;
}

// Where the caller has parked, it takes what this thread leaves over, before any worker does.
bool Dispatch::must_wake_caller() {
    if (!m_caller_parked || !((m_left == 0 && m_running == 0) || count_ready() > 0)) return false;
    m_caller_parked = false;
    return true;
}

void Dispatch::publish() {
    m_over.store(m_left == 0 && m_running == 0, std::memory_order_release);
    m_ready_count.store(m_ready_now, std::memory_order_release);
}

Step Dispatch::next(size_t home, bool insist) {
    const std::lock_guard lock(m_latch);
    const auto step = begin_best(home, insist);
    publish();
    return step;
}

Step Dispatch::finished(size_t submodel, size_t home) {
    const std::lock_guard lock(m_latch);
    release(submodel);
    if (!m_error) {
        --m_left;
        for (const auto consumer : m_order.m_consumers[submodel]) {
            if (--m_missing[consumer] == 0) set_ready(consumer);
        }
    }
    auto step = begin_best(home, false);
    step.wake_caller = must_wake_caller();
    if (step.wake_caller && step.others > 0) --step.others;
    publish();
    return step;
}

Step Dispatch::failed(size_t submodel, std::exception_ptr error) {
    const std::lock_guard lock(m_latch);
    release(submodel);
    if (!m_error) m_error = std::move(error);
    m_left = 0;
    m_ready_now = 0;
    std::fill(m_ready, m_ready + m_words, 0U);
    Step step;
    step.wake_caller = must_wake_caller();
    publish();
    return step;
}

bool Dispatch::park() {
    const std::lock_guard lock(m_latch);
    m_caller_parked = !is_over() && count_ready() == 0;
    return m_caller_parked;
}

}  // namespace ov_autoplace::executor
