#include "ov_autoplace/list_schedule.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>

namespace ov_autoplace {
namespace {

constexpr std::int32_t nothing = -1;
constexpr double never = std::numeric_limits<double>::infinity();
// Sums in another order differ in their last digits.
constexpr double up_to_rounding = 1 + 1e-12;

}  // namespace

ListScheduler::ListScheduler(std::int32_t lanes, double corun_factor)
    : m_lanes(lanes),
      m_corun_factor(corun_factor),
      m_waiting(lanes),
      m_running(lanes, nothing),
      m_finish(lanes, never),
      m_runs(lanes) {
    if (!(corun_factor >= 1 && corun_factor < never)) {
        throw std::invalid_argument("corun_factor is " + std::to_string(corun_factor) +
                                    "; it must be finite and 1 or more");
    }
}

void ListScheduler::rank_upward(const SubmodelGraph& graph) {
    m_rank.resize(graph.size());
    for (std::int32_t i = graph.size() - 1; i >= 0; --i) {
        const std::int32_t s = graph.order[i];
        double after = 0;
        for (std::int32_t a = graph.out_offsets[s]; a < graph.out_offsets[s + 1]; ++a) {
            after = std::max(after, graph.arcs[a].delay + m_rank[graph.arcs[a].target]);
        }
        m_rank[s] = graph.work[s] + after;
    }
}

// All inputs of a submodel are on their way: the last of them arrives at m_ready.
void ListScheduler::arrive(std::int32_t submodel) {
    m_arriving.emplace_back(m_ready[submodel], submodel);
    std::push_heap(m_arriving.begin(), m_arriving.end(), std::greater<>());
}

void ListScheduler::finish(const SubmodelGraph& graph, std::int32_t lane, double now) {
    const std::int32_t s = m_running[lane];
    m_running[lane] = nothing;
    m_finish[lane] = never;
    for (std::int32_t a = graph.out_offsets[s]; a < graph.out_offsets[s + 1]; ++a) {
        const std::int32_t target = graph.arcs[a].target;
        m_ready[target] = std::max(m_ready[target], now + graph.arcs[a].delay);
        if (--m_waits[target] == 0) arrive(target);
    }
}

// From `now` on, each second of work takes `pace` seconds on every lane.
void ListScheduler::change_pace(double now, double pace) {
    if (pace == m_pace) return;
    for (std::int32_t lane = 0; lane < m_lanes; ++lane) {
        if (m_running[lane] != nothing) m_finish[lane] = now + (m_finish[lane] - now) * (pace / m_pace);
    }
    m_pace = pace;
}

void ListScheduler::schedule(const SubmodelGraph& graph, double begin, SubmodelTimes& times) {
    const std::int32_t count = graph.size();
    rank_upward(graph);
    times.start.assign(count, 0);
    times.finish.assign(count, 0);
    times.sequence.clear();
    m_ready.assign(count, begin);
    m_waits.resize(count);
    m_arriving.clear();
    m_pace = 1;
    for (std::int32_t s = 0; s < count; ++s) {
        m_waits[s] = graph.in_offsets[s + 1] - graph.in_offsets[s];
        if (m_waits[s] == 0) arrive(s);
    }
    // Of equal ranks the first submodel: the heap's largest has the smallest number.
    const auto is_less_urgent = [&](const auto& a, const auto& b) {
        return a.first < b.first || (a.first == b.first && a.second > b.second);
    };
    double now = begin;
    std::int32_t computing = 0;
    for (std::int32_t finished = 0; finished < count;) {
        now = m_arriving.empty() ? never : m_arriving.front().first;
        for (std::int32_t lane = 0; lane < m_lanes; ++lane) now = std::min(now, m_finish[lane]);
        for (std::int32_t lane = 0; lane < m_lanes; ++lane) {
            if (m_running[lane] == nothing || m_finish[lane] > now) continue;
            times.finish[m_running[lane]] = now;
            finish(graph, lane, now);
            ++finished;
            --computing;
        }
        while (!m_arriving.empty() && m_arriving.front().first <= now) {
            const std::int32_t s = m_arriving.front().second;
            std::pop_heap(m_arriving.begin(), m_arriving.end(), std::greater<>());
            m_arriving.pop_back();
            auto& waiting = m_waiting[graph.lane[s]];
            waiting.emplace_back(m_rank[s], s);
            std::push_heap(waiting.begin(), waiting.end(), is_less_urgent);
        }
        for (std::int32_t lane = 0; lane < m_lanes; ++lane) {
            computing += m_running[lane] == nothing && !m_waiting[lane].empty();
        }
        change_pace(now, computing > 1 ? m_corun_factor : 1.0);
        for (std::int32_t lane = 0; lane < m_lanes; ++lane) {
            auto& waiting = m_waiting[lane];
            if (m_running[lane] != nothing || waiting.empty()) continue;
            const std::int32_t s = waiting.front().second;
            std::pop_heap(waiting.begin(), waiting.end(), is_less_urgent);
            waiting.pop_back();
            m_running[lane] = s;
            m_finish[lane] = now + graph.work[s] * m_pace;
            times.start[s] = now;
            times.sequence.push_back(s);
        }
    }
    times.makespan = now;
}

std::int32_t ListScheduler::join_idle_cuts(const SubmodelGraph& graph, const SubmodelTimes& times,
                                           std::vector<std::int32_t>& joined) {
    joined.assign(graph.size(), nothing);
    m_runs.assign(m_lanes, Run{});
    std::int32_t count = 0;
    for (const std::int32_t s : times.sequence) {
        Run& run = m_runs[graph.lane[s]];
        bool joins = run.number != nothing && times.finish[s] <= run.deadline * up_to_rounding;
        for (std::int32_t i = graph.in_offsets[s]; joins && i < graph.in_offsets[s + 1]; ++i) {
            const SubmodelGraph::Arc& arc = graph.arcs[graph.in_arcs[i]];
            const bool within = joined[arc.source] == run.number;
            joins = within || times.finish[arc.source] + arc.delay <= run.start * up_to_rounding;
        }
        if (!joins) run = Run{count++, times.start[s], never};
        joined[s] = run.number;
        for (std::int32_t a = graph.out_offsets[s]; a < graph.out_offsets[s + 1]; ++a) {
            const SubmodelGraph::Arc& arc = graph.arcs[a];
            if (graph.lane[arc.target] == graph.lane[s]) continue;
            run.deadline = std::min(run.deadline, times.start[arc.target] - arc.delay);
        }
    }
    return count;
}

}  // namespace ov_autoplace
