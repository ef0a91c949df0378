#include "thread_pool.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <chrono>

#include "refuse.hpp"

namespace ov_autoplace::executor {
namespace {

using std::chrono::microseconds;

// How long threads look for work before they park: workers when there is no run, all threads within one.
constexpr microseconds patience_between_runs{200};
constexpr microseconds patience_in_run{2000};

// The thread that calls for a run is the first lane's.
constexpr size_t caller_home = 0;

}  // namespace

ThreadPool::ThreadPool(const Plan& plan, const Compiled& compiled)
    : m_plan(plan),
      m_compiled(compiled),
      m_order(plan),
      m_occupancy(compiled.streams),
      m_last_end(Clock::now().time_since_epoch().count()),
      m_forecast(plan) {
    m_free.push_back(&add_context());
}

ThreadPool::~ThreadPool() {
    m_stopping.store(true);
    for (size_t i = 0; i < m_workers.size(); ++i) m_parking.wake();
    for (auto& worker : m_workers) worker.join();
}

void ThreadPool::run(const ov::TensorVector& inputs, ov::TensorVector& outputs) {
    auto& context = borrow(inputs, outputs);
    const Return give_back{*this, context};
    context.bind(inputs, outputs);
    context.wants_help = is_wanted();
    m_running.fetch_add(1);
    m_wanting.fetch_add(context.wants_help);
    context.dispatch.start();
    // Also for what is ready later: by then the threads are awake.
    if (context.wants_help) {
        make_way();
        call(m_order.threads() - 1);
    }
    attend(context);
    m_wanting.fetch_sub(context.wants_help);
    m_running.fetch_sub(1);
    m_last_end.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
    if (const auto error = context.dispatch.error()) std::rethrow_exception(error);
    context.collect(inputs, outputs);
    m_forecast.learn(context);
    m_runs.fetch_add(1, std::memory_order_relaxed);
}

// Whether help is worth waking somebody: where runs follow each other it comes back with the next ones.
bool ThreadPool::is_wanted() {
    if (m_order.threads() == 1) return false;
    const Clock::time_point last_end(Clock::duration(m_last_end.load(std::memory_order_relaxed)));
    return Clock::now() - last_end < patience_between_runs || m_forecast.pays(m_order.threads());
}

// Workers leave the processor of this thread, on which they would wait until it sleeps.
void ThreadPool::make_way() {
    const int here = sched_getcpu();
    if (here == m_kept_off.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(m_mutex);
    m_kept_off.store(here, std::memory_order_relaxed);
    for (auto& worker : m_workers) m_compiled.mask.keep_off(worker.native_handle(), here);
}

Context& ThreadPool::add_context() {
    m_contexts.push_back(std::make_unique<Context>(m_plan, m_order, m_occupancy, m_compiled));
    auto& context = *m_contexts.back();
    // All that are lent have to fit when they come back, where nothing may fail.
    m_free.reserve(m_contexts.size());
    context.next = m_newest.load(std::memory_order_relaxed);
    m_newest.store(&context, std::memory_order_release);
    return context;
}

Context& ThreadPool::borrow(const ov::TensorVector& inputs, const ov::TensorVector& outputs) {
    const std::lock_guard lock(m_mutex);
    if (m_free.empty()) return add_context();
    auto found = std::find_if(m_free.rbegin(), m_free.rend(),
                              [&](const auto* it) { return it->is_bound_to(inputs, outputs); });
    if (found == m_free.rend()) found = m_free.rbegin();
    auto& context = **found;
    m_free.erase(std::prev(found.base()));
    return context;
}

Context* ThreadPool::borrow_last() {
    const std::lock_guard lock(m_mutex);
    const auto found = std::find(m_free.begin(), m_free.end(), m_last);
    if (found == m_free.end()) return nullptr;
    m_free.erase(found);
    return m_last;
}

void ThreadPool::put_back(Context& context) {
    const std::lock_guard lock(m_mutex);
    m_free.push_back(&context);
    m_last = &context;
}

// The calling thread, until the run is over.
void ThreadPool::attend(Context& context) {
    auto& dispatch = context.dispatch;
    auto until = Clock::now() + patience_in_run;
    bool insist = false;
    while (!dispatch.is_over()) {
        if (dispatch.has_ready() && do_all(context, caller_home, insist) > 0) {
            insist = false;
            until = Clock::now() + patience_in_run;
            continue;
        }
        sched_yield();
        if (Clock::now() < until) continue;
        // What is ready now is occupied by other runs.
        insist = !dispatch.park();
        if (!insist) context.caller.wait();
        until = Clock::now() + patience_in_run;
    }
}

// Runs submodels until there is none to begin. Returns how many it were.
size_t ThreadPool::do_all(Context& context, size_t home, bool insist) {
    size_t count = 0;
    auto step = context.dispatch.next(home, insist);
    for (; step.submodel != Step::none; ++count) {
        if (step.others > 0 && context.wants_help) call(step.others);
        step = do_one(context, static_cast<size_t>(step.submodel), home);
        if (step.wake_caller) context.caller.wake();
    }
    return count;
}

Step ThreadPool::do_one(Context& context, size_t submodel, size_t home) {
    std::string reason = "no reason given";
    try {
        context.infer(submodel, home);
        return context.dispatch.finished(submodel, home);
    } catch (const std::exception& error) {
        reason = reason_of(error);
    } catch (...) {
    }
    const auto& it = m_plan.submodels[submodel];
    const Refusal sentence("submodel '" + it.name + "' on " + m_plan.lanes[it.lane].device + ": " + reason);
    return context.dispatch.failed(submodel, std::make_exception_ptr(sentence));
}

// Wakes a thread, or makes one, if fewer than so many look for work. It calls for more in its turn.
void ThreadPool::call(size_t helpers) {
    // Each run has a thread already; more threads than lanes would only take turns.
    const auto running = m_running.load(std::memory_order_relaxed);
    const auto lanes = m_plan.lanes.size();
    if (running >= lanes || m_looking.load() >= std::min(helpers, lanes - running)) return;
    auto parked = m_parked.load();
    while (parked > 0 && !m_parked.compare_exchange_weak(parked, parked - 1)) {
    }
    if (parked == 0) {
        if (m_made.load(std::memory_order_relaxed) + 1 < lanes) add_worker();
        return;
    }
    m_wakes.fetch_add(1, std::memory_order_relaxed);
    const auto start = Clock::now();
    m_last_wake.store(start.time_since_epoch().count(), std::memory_order_relaxed);
    m_parking.wake();
    m_forecast.learn_waking(Clock::now() - start);
}

void ThreadPool::add_worker() {
    const std::lock_guard lock(m_mutex);
    if (m_made.load() + 1 >= m_plan.lanes.size()) return;
    try {
        m_workers.reserve(m_workers.size() + 1);
        m_workers.emplace_back(&ThreadPool::work, this, m_made.load() + 1);
    } catch (const std::exception&) {
        return;  // The system has no thread for us now: the caller works alone.
    }
    m_made.fetch_add(1);
    m_wakes.fetch_add(1, std::memory_order_relaxed);
}

Context* ThreadPool::find_work() const {
    if (m_running.load(std::memory_order_relaxed) >= m_plan.lanes.size()) return nullptr;
    auto* context = m_newest.load(std::memory_order_acquire);
    while (context && !context->dispatch.has_ready()) context = context->next;
    return context;
}

bool ThreadPool::help(size_t home) {
    auto* context = find_work();
    if (!context) return false;
    m_looking.fetch_sub(1);
    const auto helped = do_all(*context, home);
    m_looking.fetch_add(1);
    m_helped.fetch_add(helped, std::memory_order_relaxed);
    return helped > 0;
}

void ThreadPool::park() {
    m_parked.fetch_add(1);
    if (find_work()) {
        // It came meanwhile, and who brought it may have thought that somebody looks for it.
        auto parked = m_parked.load();
        while (parked > 0) {
            if (m_parked.compare_exchange_weak(parked, parked - 1)) return;
        }
    }
    m_parking.wait();
    const Clock::time_point woken(Clock::duration(m_last_wake.load(std::memory_order_relaxed)));
    m_forecast.learn_delay(Clock::now() - woken);
}

void ThreadPool::work(size_t home) {
    {
        const std::lock_guard lock(m_mutex);
        m_compiled.mask.apply();
        m_compiled.mask.keep_off(pthread_self(), m_kept_off.load(std::memory_order_relaxed));
    }
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    m_looking.fetch_add(1);
    auto idle_since = Clock::now();
    while (!m_stopping.load()) {
        if (help(home)) {
            idle_since = Clock::now();
            continue;
        }
        sched_yield();
        const bool in_run = m_wanting.load(std::memory_order_relaxed) > 0;
        if (Clock::now() - idle_since < (in_run ? patience_in_run : patience_between_runs)) continue;
        m_looking.fetch_sub(1);
        park();
        m_looking.fetch_add(1);
        if (m_wanting.load() > 0) call(m_order.threads() - 1);
        idle_since = Clock::now();
    }
}

Counters ThreadPool::counters() const { return {m_runs.load(), m_wakes.load(), m_helped.load()}; }

}  // namespace ov_autoplace::executor
