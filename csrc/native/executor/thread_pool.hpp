// The contexts of an executor, and the threads that help with their runs.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "context.hpp"
#include "forecast.hpp"

namespace ov_autoplace::executor {

// What the threads did since the pool was made.
struct Counters {
    uint64_t runs = 0;
    // Parked workers that were woken, threads that were made for it included.
    uint64_t wakes = 0;
    // Submodels that workers ran.
    uint64_t helped = 0;
};

class ThreadPool {
public:
    ThreadPool(const Plan& plan, const Compiled& compiled);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    // Runs the plan once. The calling thread does what nobody else has begun.
    void run(const ov::TensorVector& inputs, ov::TensorVector& outputs);

    // Calls `look` with the context of the run that ended last, which rests meanwhile; not, if there is none.
    template <class Look>
    void look_at_last(const Look& look) {
        if (Context* context = borrow_last()) {
            const Return give_back{*this, *context};
            look(*context);
        }
    }
    Counters counters() const;

private:
    // Puts a context back at the end of a scope.
    struct Return {
        ThreadPool& pool;
        Context& context;
        ~Return() { pool.put_back(context); }
    };
    Context& add_context();
    Context& borrow(const ov::TensorVector& inputs, const ov::TensorVector& outputs);
    Context* borrow_last();
    void put_back(Context& context);

    bool is_wanted();
    void make_way();
    void attend(Context& context);
    size_t do_all(Context& context, size_t home, bool insist = false);
    Step do_one(Context& context, size_t submodel, size_t home);
    void add_worker();
    Context* find_work() const;
    bool help(size_t home);
    void park();
    void work(size_t home);
    void call(size_t helpers);

    const Plan& m_plan;
    const Compiled& m_compiled;
    const Order m_order;
    Occupancy m_occupancy;
    std::mutex m_mutex;
    std::vector<std::unique_ptr<Context>> m_contexts;
    std::vector<Context*> m_free;
    Context* m_last = nullptr;
    std::vector<std::thread> m_workers;

    std::atomic<Context*> m_newest{nullptr};
    // Runs that go on, those of them that shall be helped, workers that look for work, those that wait to be
    // woken, and all that there are.
    std::atomic<size_t> m_running{0}, m_wanting{0}, m_looking{0}, m_parked{0}, m_made{0};
    std::atomic<Clock::rep> m_last_end, m_last_wake{0};
    // The processor that workers keep off: where the caller of the newest run that shall be helped is.
    std::atomic<int> m_kept_off{-1};
    Forecast m_forecast;
    std::atomic<bool> m_stopping{false};
    Semaphore m_parking;
    std::atomic<uint64_t> m_runs{0}, m_wakes{0}, m_helped{0};
};

}  // namespace ov_autoplace::executor
