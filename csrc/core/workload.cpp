#include "ov_autoplace/workload.hpp"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "ov_autoplace/failure.hpp"

namespace ov_autoplace {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostCallers = 1'000;
constexpr double kMostSeconds = 60.0;
constexpr double kMostTimes = 1'000.0;
constexpr std::size_t kMostModels = 1'000;  // of a chain, whose inferences call each other
constexpr double kMostInferences = 1e5;     // of a request
constexpr std::size_t kMostSpans = 100'000;

double between(Clock::time_point start, Clock::time_point end) {
    return std::chrono::duration<double>(end - start).count();
}

double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument("a workload " + why); }

void check_links(const Workload& workload) {
    const std::size_t count = workload.models.size();
    std::vector<std::size_t> before(count, 0);  // links to each model
    for (const WorkloadLink& link : workload.links) {
        if (link.from >= count || link.to >= count) refuse("links a model that it does not have");
        if (!(link.times > 0 && link.times <= kMostTimes))
            refuse("has links of more than 0 and at most 1000");
        ++before[link.to];
    }
    std::vector<std::size_t> free;
    for (std::size_t model = 0; model < count; ++model) {
        if (before[model] == 0) free.push_back(model);
    }
    for (std::size_t i = 0; i < free.size(); ++i) {
        const std::size_t model = free[i];
        for (const WorkloadLink& link : workload.links) {
            if (link.from == model && --before[link.to] == 0) free.push_back(link.to);
        }
    }
    if (free.size() < count) refuse("has links that form a cycle");
    // Inferences of a request that begins at each model: those behind it are known when it is looked at.
    std::vector<double> inferences(count, 1.0);
    for (auto model = free.rbegin(); model != free.rend(); ++model) {
        for (const WorkloadLink& link : workload.links) {
            if (link.from == *model) inferences[*model] += link.times * inferences[link.to];
        }
        if (!(inferences[*model] <= kMostInferences)) refuse("has requests of more than 100000 inferences");
    }
}

void check(const Workload& workload, double seconds) {
    if (!(seconds > 0 && seconds <= kMostSeconds)) refuse("runs for more than 0 and at most 60 seconds");
    if (workload.sources.empty()) refuse("needs at least one source");
    if (workload.models.size() > kMostModels) refuse("has more than 1000 models");
    for (const auto& copies : workload.models) {
        if (copies.empty()) refuse("has a model without a compiled one");
        for (const auto& copy : copies) {
            if (copy == nullptr) refuse("has a compiled model that is None");
        }
    }
    std::size_t callers = 0;
    for (const WorkloadSource& source : workload.sources) {
        if (source.model >= workload.models.size()) refuse("starts a model that it does not have");
        if (source.callers < 1 || source.callers > kMostCallers ||
            (callers += source.callers) > kMostCallers) {
            refuse("has 1 to 1000 callers, each of its sources at least one");
        }
        if (!std::is_sorted(source.arrivals.begin(), source.arrivals.end())) refuse("has unordered arrivals");
        for (const double arrival : source.arrivals) {
            if (!(arrival >= 0 && arrival <= kMostSeconds)) refuse("has arrivals of 0 to 60 seconds");
        }
    }
    check_links(workload);
}

// Everything that callers share.
class Running {
public:
    Running(const Workload& workload, double seconds, bool with_spans)
        : workload(workload),
          seconds(seconds),
          with_spans(with_spans),
          m_linked(workload.links.size()),
          m_next(workload.sources.size()) {}

    // How many inferences of a link follow this one of its first model.
    std::size_t following(std::size_t link) {
        const double times = workload.links[link].times;
        const auto before = static_cast<double>(m_linked[link]++);
        return static_cast<std::size_t>(std::floor((before + 1) * times) - std::floor(before * times));
    }

    // Takes a request of an open source; there may be none of that number.
    std::size_t take(std::size_t source) { return m_next[source]++; }
    std::size_t taken(std::size_t source) const { return m_next[source]; }

    const Workload& workload;
    const double seconds;
    const bool with_spans;
    Failure failure;
    Clock::time_point start;  // read by all once it has started
    std::atomic<bool> has_started{false};
    std::atomic<std::size_t> waiting{0};   // callers that are not ready yet
    std::atomic<std::size_t> counting{0};  // callers that are not done yet

private:
    std::vector<std::atomic<std::size_t>> m_linked;  // inferences that each link followed
    std::vector<std::atomic<std::size_t>> m_next;    // request of each source that nobody has taken
};

// One thread, which runs the requests of some sources.
class Caller {
public:
    Caller(Running& running, std::vector<std::size_t> sources, std::size_t number)
        : m_running(running), m_sources(std::move(sources)), m_number(number) {
        const Workload& workload = running.workload;
        outcome.sources.resize(workload.sources.size());
        outcome.models.resize(workload.models.size());
    }

    // The models that its requests come to.
    std::vector<std::size_t> models() const {
        std::vector<std::size_t> found;
        const auto add = [&](std::size_t model) {
            if (std::find(found.begin(), found.end(), model) == found.end()) found.push_back(model);
        };
        for (const std::size_t source : m_sources) add(m_running.workload.sources[source].model);
        for (std::size_t i = 0; i < found.size(); ++i) {
            for (const WorkloadLink& link : m_running.workload.links) {
                if (link.from == found[i]) add(link.to);
            }
        }
        return found;
    }
    void give(std::size_t model, Executable::Request request) {
        m_requests.emplace(model, std::move(request));
    }

    void work() {
        bool is_ready = false;
        try {
            for (auto& [model, request] : m_requests) request.infer();
            is_ready = true;
            wait_for_all();
            run();
        } catch (...) {
            m_running.failure.keep(std::current_exception());
            if (!is_ready) wait_for_all();
        }
        if (!m_is_done) done();
    }

    WorkloadOutcome outcome;  // what it did

private:
    // All start together; a thread that is still being made would leave the others too much room.
    void wait_for_all() {
        if (--m_running.waiting == 0) {
            m_running.start = Clock::now();
            m_running.has_started = true;
        }
        while (!m_running.has_started) std::this_thread::yield();
    }

    void done() {
        m_is_done = true;
        --m_running.counting;
    }

    double now() const { return between(m_running.start, Clock::now()); }

    void run() {
        std::size_t turn = 0;
        // Who has nothing left to count goes on while somebody has: its share of the machine stays taken.
        while (!m_running.failure.happened() && m_running.counting > 0) {
            const std::size_t source = next(turn);
            if (source == kNothing) {
                if (!m_is_done) done();
                if (!has_closed()) return;
                continue;
            }
            if (!is_open(source)) {
                request(source, now());
                if (!m_is_done && closed_are_done() && open_are_done()) done();
            } else {
                const std::size_t index = m_running.take(source);
                const auto& arrivals = m_running.workload.sources[source].arrivals;
                if (index >= arrivals.size()) continue;  // somebody else took the last one
                if (now() > 2 * m_running.seconds) {
                    outcome.sources[source].latencies.push_back(std::numeric_limits<double>::infinity());
                    continue;
                }
                std::this_thread::sleep_until(m_running.start +
                                              std::chrono::duration_cast<Clock::duration>(
                                                  std::chrono::duration<double>(arrivals[index])));
                request(source, arrivals[index]);
            }
        }
    }

    // The source whose request comes next: the earliest that is due, else closed loops in turns, else the
    // earliest of all.
    std::size_t next(std::size_t& turn) const {
        std::size_t earliest = kNothing;
        double when = std::numeric_limits<double>::infinity();
        for (const std::size_t source : m_sources) {
            const auto& arrivals = m_running.workload.sources[source].arrivals;
            const std::size_t index = m_running.taken(source);
            if (is_open(source) && index < arrivals.size() && arrivals[index] < when) {
                earliest = source;
                when = arrivals[index];
            }
        }
        if (earliest != kNothing && (!has_closed() || when <= now())) return earliest;
        for (std::size_t i = 0; i < m_sources.size(); ++i) {
            const std::size_t source = m_sources[turn++ % m_sources.size()];
            if (!is_open(source)) return source;
        }
        return kNothing;
    }

    bool is_open(std::size_t source) const { return m_running.workload.sources[source].is_open; }
    bool has_closed() const {
        return std::any_of(m_sources.begin(), m_sources.end(), [&](std::size_t s) { return !is_open(s); });
    }
    bool closed_are_done() const {
        return std::all_of(m_sources.begin(), m_sources.end(), [&](std::size_t s) {
            return is_open(s) ||
                   (outcome.sources[s].latencies.size() >= kFewestOfACaller && now() >= m_running.seconds);
        });
    }
    bool open_are_done() const {
        return std::all_of(m_sources.begin(), m_sources.end(), [&](std::size_t s) {
            return !is_open(s) || m_running.taken(s) >= m_running.workload.sources[s].arrivals.size();
        });
    }

    void request(std::size_t source, double intended) {
        infer(m_running.workload.sources[source].model);
        const double end = now();
        if (m_is_done) return;
        WorkloadOutcome::Source& own = outcome.sources[source];
        own.latencies.push_back(end - intended);
        own.rate = static_cast<double>(own.latencies.size()) / std::max(end, 1e-12);
    }

    void infer(std::size_t model) {
        const double begin = now();
        m_requests.at(model).infer();
        const double end = now();
        if (!m_is_done) {
            ++outcome.models[model].inferences;
            outcome.models[model].busy_seconds += end - begin;
        }
        if (m_running.with_spans && outcome.spans.size() < kMostSpans) {
            outcome.spans.push_back({model, m_number, begin, end, sched_getcpu()});
        }
        for (std::size_t link = 0; link < m_running.workload.links.size(); ++link) {
            if (m_running.workload.links[link].from != model) continue;
            for (std::size_t i = m_running.following(link); i > 0; --i) {
                infer(m_running.workload.links[link].to);
            }
        }
    }

    static constexpr std::size_t kNothing = std::numeric_limits<std::size_t>::max();

    Running& m_running;
    std::vector<std::size_t> m_sources;
    std::size_t m_number;
    std::map<std::size_t, Executable::Request> m_requests;
    bool m_is_done = false;
};

std::vector<std::unique_ptr<Caller>> callers_of(Running& running) {
    std::vector<std::unique_ptr<Caller>> callers;
    const auto& sources = running.workload.sources;
    if (running.workload.in_turn) {
        std::vector<std::size_t> all(sources.size());
        for (std::size_t s = 0; s < all.size(); ++s) all[s] = s;
        callers.push_back(std::make_unique<Caller>(running, all, 0));
        return callers;
    }
    for (std::size_t s = 0; s < sources.size(); ++s) {
        for (std::size_t i = 0; i < sources[s].callers; ++i) {
            callers.push_back(std::make_unique<Caller>(running, std::vector<std::size_t>{s}, callers.size()));
        }
    }
    return callers;
}

void add(WorkloadOutcome& total, const WorkloadOutcome& part) {
    for (std::size_t s = 0; s < total.sources.size(); ++s) {
        const auto& own = part.sources[s];
        total.sources[s].latencies.insert(total.sources[s].latencies.end(), own.latencies.begin(),
                                          own.latencies.end());
        total.sources[s].rate += own.rate;
    }
    for (std::size_t m = 0; m < total.models.size(); ++m) {
        total.models[m].inferences += part.models[m].inferences;
        total.models[m].busy_seconds += part.models[m].busy_seconds;
    }
    total.spans.insert(total.spans.end(), part.spans.begin(), part.spans.end());
}

WorkloadOutcome run(const Workload& workload, double seconds, bool with_spans) {
    // One user of an executable's requests at a time; in one order, so that two never wait for each other.
    std::map<Executable*, std::size_t> taken;  // requests of each
    for (const auto& copies : workload.models) {
        for (const auto& copy : copies) taken[copy.get()] = 0;
    }
    std::vector<std::unique_lock<std::mutex>> locks;
    for (const auto& entry : taken) locks.push_back(entry.first->lock());

    Running running(workload, seconds, with_spans);
    const auto callers = callers_of(running);
    std::vector<std::size_t> dealt(workload.models.size(), 0);
    for (const auto& caller : callers) {
        for (const std::size_t model : caller->models()) {
            const auto& copies = workload.models[model];
            Executable* const copy = copies[dealt[model]++ % copies.size()].get();
            caller->give(model, copy->request(taken[copy]++));
        }
    }
    running.waiting = callers.size();
    running.counting = callers.size();
    const double cpu_before = cpu_seconds();
    const auto before = Clock::now();
    std::vector<std::thread> threads;
    for (const auto& caller : callers) threads.emplace_back([&caller] { caller->work(); });
    for (std::thread& thread : threads) thread.join();
    running.failure.rethrow();

    WorkloadOutcome total;
    total.sources.resize(workload.sources.size());
    total.models.resize(workload.models.size());
    for (const auto& caller : callers) add(total, caller->outcome);
    total.seconds = between(before, Clock::now());
    total.cpu_seconds = cpu_seconds() - cpu_before;
    return total;
}

}  // namespace

WorkloadOutcome run_workload(const Workload& workload, double seconds, bool with_spans) {
    check(workload, seconds);
    return guarded([&] { return run(workload, seconds, with_spans); });
}

}  // namespace ov_autoplace
