// Which submodel of one run a thread takes next.
//
// Every thread may take any submodel, but a lane runs one at a time. A thread prefers its own lane's, then
// those of lanes that are copies of its own, then any other; among equals the smallest rank. So a worker that
// is late finds its work taken, a chain of submodels stays in one thread whatever their lanes, and nothing
// can wait for a thread that is not there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

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

private:
    friend class Dispatch;
    std::vector<size_t> m_lane;
    // Submodels by rank, and where in that order each one is.
    std::vector<uint32_t> m_by_rank, m_position;
    std::vector<uint32_t> m_producers;
    std::vector<std::vector<uint32_t>> m_consumers;
    // Lanes that are copies are one kind.
    std::vector<size_t> m_kind;
    std::vector<uint32_t> m_lanes_of_kind;
};

class Dispatch {
public:
    static constexpr int none = -1;

    struct Taken {
        int submodel = none;
        // How many more threads could take one now.
        size_t others = 0;
    };

    explicit Dispatch(const Order& order);

    // Everything is still to be done.
    void start();
    // The next submodel for a thread of lane `home`.
    Taken take(size_t home);
    // The submodel is done. Returns whether the caller of the run, having parked, has to be woken.
    bool finish(size_t submodel);
    // It failed: nothing is taken any more. Returns the same.
    bool fail(size_t submodel, std::exception_ptr error);

    // Whether a thread may find something to take; asked without a lock.
    bool has_ready() const { return m_ready_count.load(std::memory_order_acquire) != 0; }
    // Whether nothing runs and nothing is left to run.
    bool is_over() const { return m_over.load(std::memory_order_acquire); }
    // Whether the caller may park: nothing to take, and not over. Whoever changes that wakes it.
    bool park();
    // What made the run fail, or nothing; once it is over.
    std::exception_ptr error() const { return m_error; }

private:
    bool can_take(uint32_t submodel) const;
    size_t takeable() const;
    bool release(size_t submodel);

    const Order& m_order;
    Latch m_latch;
    // Ready submodels as positions in the order of ranks, ascending.
    std::vector<uint32_t> m_ready;
    std::vector<uint32_t> m_missing;
    std::vector<uint32_t> m_running_of_kind;
    size_t m_left = 0, m_running = 0;
    bool m_caller_parked = false;
    std::exception_ptr m_error;
    std::atomic<size_t> m_ready_count{0};
    std::atomic<bool> m_over{true};
};

}  // namespace ov_autoplace::executor
