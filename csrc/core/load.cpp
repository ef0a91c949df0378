#include "ov_autoplace/load.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "ov_autoplace/failure.hpp"
#include "ov_autoplace/profiler_error.hpp"

namespace ov_autoplace {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostRequests = 1'000;
constexpr double kMostSeconds = 60.0;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

void check(const Load& load) {
    if (load.members.empty()) {
        throw std::invalid_argument("a load needs at least one compiled model");
    }
    for (const auto& member : load.members) {
        if (member == nullptr) throw std::invalid_argument("a compiled model of the load is None");
    }
    if (load.requests < 1 || load.requests > kMostRequests) {
        throw std::invalid_argument("a load has 1 to " + std::to_string(kMostRequests) + " requests, not " +
                                    std::to_string(load.requests));
    }
}

void check_seconds(double seconds) {
    if (!(seconds > 0 && seconds <= kMostSeconds)) {
        throw std::invalid_argument("a load runs for more than 0 and at most 60 seconds");
    }
}

using Requests = std::vector<Executable::Request>;

// Each thread stops after the inference in which its time ends, so that its own rate is exact.
double synchronous_rate(Requests& requests, double seconds) {
    Failure failure;
    std::vector<double> rates(requests.size(), 0);
    std::atomic<std::size_t> waiting{requests.size()};
    const auto work = [&](std::size_t i) {
        try {
            requests[i].infer();
        } catch (...) {
            failure.keep(std::current_exception());
        }
        // All start together; a thread that is still being made would leave the others too much room.
        waiting -= 1;
        while (waiting > 0) std::this_thread::yield();
        try {
            const auto start = Clock::now();
            double elapsed = 0;
            std::size_t finished = 0;
            while (!failure.happened() && (finished < kFewestOfARequest || elapsed < seconds)) {
                requests[i].infer();
                ++finished;
                elapsed = seconds_since(start);
            }
            rates[i] = static_cast<double>(finished) / std::max(elapsed, 1e-12);
        } catch (...) {
            failure.keep(std::current_exception());
        }
    };
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < requests.size(); ++i) threads.emplace_back(work, i);
    for (std::thread& thread : threads) thread.join();
    failure.rethrow();
    double total = 0;
    for (const double rate : rates) total += rate;
    return total;
}

// Requests that a callback told to be idle.
class IdleQueue {
public:
    void push(std::size_t request) {
        {
            const std::lock_guard lock(m_mutex);
            m_idle.push_back(request);
        }
        m_changed.notify_one();
    }
    std::size_t pop() {
        std::unique_lock lock(m_mutex);
        m_changed.wait(lock, [&] { return !m_idle.empty(); });
        const std::size_t request = m_idle.front();
        m_idle.pop_front();
        return request;
    }

private:
    std::mutex m_mutex;
    std::condition_variable m_changed;
    std::deque<std::size_t> m_idle;
};

double asynchronous_rate(Requests& requests, double seconds) {
    Failure failure;
    IdleQueue idle;
    struct End {
        Failure& failure;
        IdleQueue& idle;
        std::size_t request;
    };
    std::vector<End> ends;
    for (std::size_t i = 0; i < requests.size(); ++i) ends.push_back({failure, idle, i});
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const auto ended = [](void* context, const char* error) {
            const End& end = *static_cast<const End*>(context);
            if (error != nullptr) end.failure.keep(std::make_exception_ptr(ProfilerError(error)));
            end.idle.push(end.request);
        };
        requests[i].on_end(ended, &ends[i]);
        idle.push(i);
    }
    std::size_t under_way = 0, finished = 0;
    const auto drain = [&] {
        for (; under_way > 0; --under_way) {
            idle.pop();
            ++finished;
        }
    };
    const auto start_next = [&] {
        const std::size_t i = idle.pop();
        try {
            requests[i].start();
        } catch (...) {
            failure.keep(std::current_exception());
            idle.push(i);
        }
    };
    const auto each_once = [&] {
        for (; under_way < requests.size(); ++under_way) start_next();
    };
    each_once();
    drain();
    double elapsed = 0;
    if (!failure.happened()) {
        for (std::size_t i = 0; i < requests.size(); ++i) idle.push(i);
        const auto start = Clock::now();
        each_once();
        finished = 0;
        while (!failure.happened() && (finished < kFewestOfARequest * requests.size() || elapsed < seconds)) {
            start_next();  // waits for one that has finished
            ++finished;
            elapsed = seconds_since(start);
        }
        drain();
        elapsed = seconds_since(start);
    }
    // The callbacks refer to what ends here.
    for (Executable::Request& request : requests) {
        request.wait();
        request.on_end(nullptr, nullptr);
    }
    failure.rethrow();
    return static_cast<double>(finished) / std::max(elapsed, 1e-12);
}

}  // namespace

double load_seconds(const Load& load, double seconds) {
    check(load);
    check_seconds(seconds);
    return guarded([&] {
        // One user of an executable's requests at a time; in one order, so that two loads never wait for each
        // other.
        std::map<Executable*, std::size_t> taken;  // requests of each
        for (const auto& member : load.members) taken[member.get()] = 0;
        std::vector<std::unique_lock<std::mutex>> locks;
        for (const auto& entry : taken) locks.push_back(entry.first->lock());
        Requests requests;
        for (std::size_t i = 0; i < load.requests; ++i) {
            Executable* const member = load.members[i % load.members.size()].get();
            requests.push_back(member->request(taken[member]++));
        }
        return 1 / (load.asynchronous ? asynchronous_rate(requests, seconds)
                                      : synchronous_rate(requests, seconds));
    });
}

RaceResult race_loads(const std::vector<Load>& loads, const RaceOptions& options, double sample_seconds,
                      const RaceCheckpoint& checkpoint, volatile std::int64_t* current) {
    check_seconds(sample_seconds);
    for (const Load& load : loads) check(load);
    const auto sampler = [&](std::size_t candidate) {
        if (current != nullptr) *current = static_cast<std::int64_t>(candidate);
        return load_seconds(loads[candidate], sample_seconds);
    };
    return race(loads.size(), sampler, options, checkpoint);
}

}  // namespace ov_autoplace
