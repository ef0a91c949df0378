// One call for many assignments, on all cores.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace ov_autoplace {

// Cores that this process may use.
inline std::size_t usable_cores() {
    cpu_set_t set;
    const bool is_known = sched_getaffinity(0, sizeof(set), &set) == 0;  // not beyond 1,024 processors
    return is_known ? CPU_COUNT(&set) : std::max(1U, std::thread::hardware_concurrency());
}

// Calls work(take), where take(begin, end) hands out slices of 0..count-1 until none is left, on `threads`
// threads at once; 0 takes one per core, which is also the most, and no more than are worth starting where
// an item visits so many `nodes`. Rethrows what `work` throws.
template <typename Work>
void in_slices(std::size_t count, std::size_t nodes, std::int32_t threads, const Work& work) {
    // Starting a thread takes about as long as some hundred of them.
    constexpr std::size_t worth_a_thread = 2'000;
    // Enough at a time to make the shared counter free.
    constexpr std::size_t slice = 16;
    if (threads < 0) throw std::invalid_argument("threads is negative: " + std::to_string(threads));
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex failing;
    const auto take = [&](std::size_t& begin, std::size_t& end) {
        begin = next.fetch_add(slice);
        end = std::min(begin + slice, count);
        return begin < count;
    };
    const auto guarded = [&]() noexcept {
        try {
            work(take);
        } catch (...) {
            const std::lock_guard lock(failing);
            failure = std::current_exception();
            next = count;
        }
    };
    // More threads than cores would only take memory.
    const std::size_t most = threads > 0 ? static_cast<std::size_t>(threads) : count * nodes / worth_a_thread;
    const std::size_t wanted = most > 1 ? std::min(most, usable_cores()) : 1;
    const std::size_t helpers = std::min(wanted, (count + slice - 1) / slice);
    std::vector<std::thread> pool;
    pool.reserve(helpers);
    try {
        for (std::size_t i = 1; i < helpers; ++i) pool.emplace_back(guarded);
    } catch (const std::system_error&) {
        // No more threads to be had: those that started, and this one, do the work.
    }
    guarded();
    for (std::thread& thread : pool) thread.join();
    if (failure) std::rethrow_exception(failure);
}

// Working memory that threads take and give back, made when none is left.
template <typename T>
class Pool {
public:
    template <typename Make>
    std::unique_ptr<T> take(const Make& make) {
        {
            const std::lock_guard lock(m_mutex);
            if (!m_idle.empty()) {
                std::unique_ptr<T> item = std::move(m_idle.back());
                m_idle.pop_back();
                return item;
            }
        }
        return make();
    }
    void give_back(std::unique_ptr<T> item) {
        const std::lock_guard lock(m_mutex);
        m_idle.push_back(std::move(item));
    }

private:
    std::mutex m_mutex;
    std::vector<std::unique_ptr<T>> m_idle;
};

}  // namespace ov_autoplace
