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
}

Dispatch::Dispatch(const Order& order)
    : m_order(order), m_missing(order.submodels()), m_running_of_kind(order.m_kind.size()) {
    m_ready.reserve(order.submodels());
}

void Dispatch::start() {
    const std::lock_guard lock(m_latch);
    m_missing = m_order.m_producers;
    m_ready.clear();
    for (uint32_t i = 0; i < m_order.submodels(); ++i) {
        if (m_missing[m_order.m_by_rank[i]] == 0) m_ready.push_back(i);
    }
    std::fill(m_running_of_kind.begin(), m_running_of_kind.end(), 0U);
    m_left = m_order.submodels();
    m_running = 0;
    m_caller_parked = false;
    m_error = nullptr;
    m_over.store(false, std::memory_order_relaxed);
    m_ready_count.store(m_ready.size(), std::memory_order_release);
}

bool Dispatch::can_take(uint32_t submodel) const {
    const auto kind = m_order.m_kind[m_order.m_lane[submodel]];
    return m_running_of_kind[kind] < m_order.m_lanes_of_kind[kind];
}

size_t Dispatch::takeable() const {
    return static_cast<size_t>(std::count_if(m_ready.begin(), m_ready.end(), [&](uint32_t position) {
        return can_take(m_order.m_by_rank[position]);
    }));
}

Dispatch::Taken Dispatch::take(size_t home) {
    const std::lock_guard lock(m_latch);
    int best_distance = 3;
    size_t best = 0;
    for (size_t i = 0; i < m_ready.size() && best_distance > 0; ++i) {
        const auto submodel = m_order.m_by_rank[m_ready[i]];
        const auto lane = m_order.m_lane[submodel];
        const int distance = lane == home ? 0 : m_order.m_kind[lane] == m_order.m_kind[home] ? 1 : 2;
        if (distance >= best_distance || !can_take(submodel)) continue;
        best_distance = distance;
        best = i;
    }
    if (best_distance == 3) return {};
    const auto submodel = m_order.m_by_rank[m_ready[best]];
    m_ready.erase(m_ready.begin() + static_cast<std::ptrdiff_t>(best));
    m_ready_count.store(m_ready.size(), std::memory_order_release);
    ++m_running_of_kind[m_order.m_kind[m_order.m_lane[submodel]]];
    ++m_running;
    return {static_cast<int>(submodel), m_ready.empty() ? 0 : takeable()};
}

bool Dispatch::release(size_t submodel) {
    --m_running_of_kind[m_order.m_kind[m_order.m_lane[submodel]]];
    --m_running;
    if (m_left == 0 && m_running == 0) m_over.store(true, std::memory_order_release);
    // The thread that is here takes one of those that are ready itself.
    const bool wake = m_caller_parked && (is_over() || takeable() > 1);
    if (wake) m_caller_parked = false;
    return wake;
}

bool Dispatch::finish(size_t submodel) {
    const std::lock_guard lock(m_latch);
    if (!m_error) {
        --m_left;
        for (const auto consumer : m_order.m_consumers[submodel]) {
            if (--m_missing[consumer] != 0) continue;
            const auto position = m_order.m_position[consumer];
            m_ready.insert(std::lower_bound(m_ready.begin(), m_ready.end(), position), position);
        }
        m_ready_count.store(m_ready.size(), std::memory_order_release);
    }
    return release(submodel);
}

bool Dispatch::fail(size_t submodel, std::exception_ptr error) {
    const std::lock_guard lock(m_latch);
    if (!m_error) m_error = std::move(error);
    m_left = 0;
    m_ready.clear();
    m_ready_count.store(0, std::memory_order_release);
    return release(submodel);
}

bool Dispatch::park() {
    const std::lock_guard lock(m_latch);
    if (is_over() || takeable() != 0) return false;
    m_caller_parked = true;
    return true;
}

}  // namespace ov_autoplace::executor
