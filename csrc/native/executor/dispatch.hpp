// Which submodel of one run a thread takes next.
//
// Every thread may run any submodel, but a lane runs one at a time. A thread prefers its own lane's, then
// those of lanes that are copies of its own, then any other; among equals the smallest rank. So a worker that
// is late finds its work done, a chain of submodels stays in one thread whatever their lanes, and nothing can
// wait for a thread that is not there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include "occupancy.hpp"
#include "plan.hpp"

namespace ov_autoplace::executor {

// A lock for a few dozen instructions, held by threads that may all be on one core.
class Latch {
public:
    void lock();
    void unlock() { m_taken.store(false, std::memory_order_release); }

private:
    std::atomic<bool> m_taken{false};
};

// The part of a plan that every run of it shares.
class Order {
public:
    explicit Order(const Plan& plan);

    size_t submodels() const { return m_lane.size(); }
    size_t lanes() const { return m_kind.size(); }
    // How many threads can be busy at once: 1 where each submodel waits for the one before it.
    size_t threads() const { return m_threads; }

private:
    friend class Dispatch;
    size_t widest_level() const;

    std::vector<size_t> m_lane;
    // Submodels by rank, and where in that order each one is.
    std::vector<uint32_t> m_by_rank, m_position;
    std::vector<uint32_t> m_producers;
    std::vector<std::vector<uint32_t>> m_consumers;
    // Lanes that are copies are one kind.
    std::vector<size_t> m_kind;
    std::vector<uint32_t> m_lanes_of_kind;
    size_t m_threads = 1;
};

// What a thread of a run is told to do.
struct Step {
    static constexpr int none = -1;

    // The submodel that it has to run now, or `none`.
    int submodel = none;
    // How many more threads could run one now.
    size_t others = 0;
    // Whether the caller of the run, having parked, has to be woken.
    bool wake_caller = false;
};

class Dispatch {
public:
    Dispatch(const Order& order, Occupancy& occupancy);

    // Everything is still to be done.
    void start();
    // What a thread of lane `home` does next. Submodels that are occupied by other runs are left for later,
    // unless the thread insists.
    Step next(size_t home, bool insist = false);
    // The same, for one that has run a submodel.
    Step finished(size_t submodel, size_t home);
    // The same, for one whose submodel failed: nothing is begun any more.
    Step failed(size_t submodel, std::exception_ptr error);

    // Whether a thread may find something to do; asked without a lock.
    bool has_ready() const { return m_ready_count.load(std::memory_order_acquire) != 0; }
    // Whether nothing runs and nothing is left to run.
    bool is_over() const { return m_over.load(std::memory_order_acquire); }
    // Whether the caller may park: nothing to do, and not over. Whoever changes that wakes it.
    bool park();
    // What made the run fail, or nothing; once it is over.
    std::exception_ptr error() const { return m_error; }

private:
    bool can_begin(size_t submodel) const;
    template <class Visit>
    void for_each_ready(const Visit& visit) const;
    size_t count_ready() const;
    void set_ready(size_t submodel);
    Step begin_best(size_t home, bool insist);
    void release(size_t submodel);
    bool must_wake_caller();
    void publish();

    const Order& m_order;
    Occupancy& m_occupancy;
    // What the threads of a run change lies close together: it travels from core to core.
    alignas(64) Latch m_latch;
    bool m_caller_parked = false;
    uint32_t m_ready_now = 0, m_left = 0, m_running = 0;
    // One bit for each submodel that is ready, in the order of ranks; then how many of each kind of lane run;
    // then how many producers of each submodel are missing.
    std::vector<uint32_t> m_state;
    uint32_t *m_ready, *m_running_of_kind, *m_missing;
    size_t m_words;
    std::exception_ptr m_error;
    // Those who wait look at these alone.
    alignas(64) std::atomic<uint32_t> m_ready_count{0};
    std::atomic<bool> m_over{true};
};

}  // namespace ov_autoplace::executor
