// One call for many assignments, on all cores.
#pragma once

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

// Calls work(take), where take(begin, end) hands out slices of 0..count-1 until none is left, on `threads`
// threads at once; 0 takes one per core, which is also the most. Rethrows what `work` throws.
template <typename Work>
void in_slices(std::size_t count, std::int32_t threads, const Work& work) {
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
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    const std::size_t wanted = threads > 0 ? std::min<std::size_t>(threads, cores) : cores;
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
