#include "ov_autoplace/overlap.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace ov_autoplace {
namespace {

constexpr double forever = std::numeric_limits<double>::infinity();
constexpr double unused = -1;  // instead of the seconds that a lane works
// Sums in another order differ in their last digits.
constexpr double up_to_rounding = 1 + 1e-12;

void check_size(std::size_t found, std::size_t expected, const char* name) {
    if (found == expected) return;
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(found) + " entries instead of " +
                                std::to_string(expected));
}

void check_below(const std::vector<std::int32_t>& values, std::int32_t end, const char* name) {
    for (const std::int32_t value : values) {
        if (value >= 0 && value < end) continue;
        throw std::invalid_argument(std::string(name) + " holds " + std::to_string(value) +
                                    "; its values lie below " + std::to_string(end));
    }
}

// Seconds and bytes are 0 or more; only what cannot run somewhere takes for ever.
void check_values(const std::vector<double>& values, bool infinite, const char* name) {
    for (const double value : values) {
        if (value >= 0 && (infinite || value != forever)) continue;
        throw std::invalid_argument(std::string(name) + " holds " + std::to_string(value));
    }
}

void check_costs(const LaneCosts& costs) {
    const PieceGraph& graph = costs.pieces;
    const auto groups = costs.piece_of.size(), lanes = static_cast<std::size_t>(graph.lanes);
    const std::size_t tensors = graph.tensor_producer.size();
    constexpr std::int32_t most_lanes = 65535;  // 16 bits, see SubmodelCutter::join_by_depth
    if (graph.lanes < 1 || graph.lanes > most_lanes) {
        throw std::invalid_argument("a cost table has 1 to " + std::to_string(most_lanes) + " lanes, not " +
                                    std::to_string(graph.lanes));
    }
    check_size(costs.group_seconds.size(), groups * lanes, "op_seconds");
    check_size(graph.tensor_bytes.size(), tensors, "tensor_bytes");
    check_size(graph.tensor_offsets.size(), tensors + 1, "tensor_offsets");
    check_size(graph.transfer_latency.size(), lanes * lanes, "transfer_latency");
    check_size(graph.transfer_seconds_per_byte.size(), lanes * lanes, "transfer_seconds_per_byte");
    check_size(graph.launch_seconds.size(), lanes, "launch_seconds");
    check_size(costs.lane_device.size(), lanes, "lane_device");
    check_below(costs.piece_of, graph.pieces, "piece_of");
    check_below(graph.tensor_producer, graph.pieces, "tensor_producer");
    check_below(graph.tensor_consumers, graph.pieces, "tensor_consumers");
    check_below(costs.node_group, static_cast<std::int32_t>(groups), "node_group");
    check_values(costs.group_seconds, true, "op_seconds");
    check_values(graph.tensor_bytes, false, "tensor_bytes");
    check_values(graph.transfer_latency, false, "transfer_latency");
    check_values(graph.transfer_seconds_per_byte, false, "transfer_seconds_per_byte");
    check_values(graph.launch_seconds, false, "launch_seconds");
    check_values({costs.mix_seconds}, false, "mix_seconds");
    if (graph.tensor_offsets.front() != 0 ||
        graph.tensor_offsets.back() != static_cast<std::int32_t>(graph.tensor_consumers.size()) ||
        !std::is_sorted(graph.tensor_offsets.begin(), graph.tensor_offsets.end())) {
        throw std::invalid_argument("tensor_offsets do not rise from 0 to the number of consumers");
    }
    for (std::size_t t = 0; t < tensors; ++t) {
        for (std::int32_t e = graph.tensor_offsets[t]; e < graph.tensor_offsets[t + 1]; ++e) {
            if (graph.tensor_consumers[e] <= graph.tensor_producer[t]) {
                throw std::invalid_argument("pieces are not in topological order");
            }
        }
    }
    check_size(graph.runs.size(), graph.pieces, "runs");
    for (const auto* ends : {&graph.tensor_producer, &graph.tensor_consumers}) {
        for (const std::int32_t piece : *ends) {
            if (graph.runs[piece]) continue;
            throw std::invalid_argument("a tensor names piece " + std::to_string(piece) +
                                        ", which does not run");
        }
    }
    for (const ShapeLink& link : costs.links) {
        check_below({link.source, link.target}, static_cast<std::int32_t>(costs.node_group.size()), "a link");
    }
}

}  // namespace

struct OverlapSimulator::Workspace {
    explicit Workspace(const LaneCosts& costs)
        : cutter(costs.pieces),
          scheduler(costs.pieces.lanes, costs.corun_factor),
          lane(costs.pieces.pieces),
          busy(costs.pieces.lanes),
          submodel_of_node(costs.links.empty() ? 0 : costs.node_group.size()),
          lost(costs.links.empty() ? 0 : costs.node_group.size(), 0) {}

    SubmodelCutter cutter;
    ListScheduler scheduler;
    std::vector<std::int32_t> lane;  // per piece
    std::vector<double> busy;        // per lane: seconds of all that it runs, were it one submodel
    SubmodelGraph fine, joined;
    SubmodelTimes times, joined_times;
    std::vector<std::int32_t> of_fine;  // submodel of each of the finest ones in the cut that is looked at
    // The best cut so far.
    double best = forever;
    std::vector<std::int32_t> best_of_fine, best_lane;
    std::vector<double> best_start, best_finish;
    std::vector<std::int32_t> submodel_of_node;
    std::vector<std::uint8_t> lost;  // scratch of hands_over_lost_shape
};

OverlapSimulator::OverlapSimulator(LaneCosts costs) : m_costs(std::move(costs)) {
    check_costs(m_costs);
    PieceGraph& graph = m_costs.pieces;
    const auto lanes = static_cast<std::size_t>(graph.lanes);
    graph.seconds.assign(graph.pieces * lanes, 0.0);
    constexpr std::int32_t none = -1;
    m_first_group.assign(graph.pieces, none);
    for (std::int32_t g = 0; g < groups(); ++g) {
        const std::size_t piece = m_costs.piece_of[g];
        if (m_first_group[piece] == none) m_first_group[piece] = g;
        for (std::size_t l = 0; l < lanes; ++l) {
            graph.seconds[piece * lanes + l] += m_costs.group_seconds[g * lanes + l];
        }
    }
    if (std::count(m_first_group.begin(), m_first_group.end(), none)) {
        throw std::invalid_argument("a piece has no group");
    }
    // What is in no submodel is known to all of them; what leaves the last submodel leaves the model.
    const auto is_outside = [&](std::int32_t node) {
        return !graph.runs[m_costs.piece_of[m_costs.node_group[node]]];
    };
    auto& links = m_costs.links;
    links.erase(std::remove_if(links.begin(), links.end(),
                               [&](const ShapeLink& link) {
                                   return is_outside(link.target) ||
                                          (is_outside(link.source) && !(link.kind & link_in_floats));
                               }),
                links.end());
    Workspace probe(m_costs);  // refuses what it cannot work with
}

OverlapSimulator::~OverlapSimulator() = default;

void OverlapSimulator::check(const std::int32_t* assignment) const {
    for (std::int32_t g = 0; g < groups(); ++g) {
        if (assignment[g] >= 0 && assignment[g] < lanes()) continue;
        throw std::invalid_argument("group " + std::to_string(g) + " is placed on device " +
                                    std::to_string(assignment[g]) + "; the table has " +
                                    std::to_string(lanes()));
    }
}

// The lane of each piece, and what each lane has to do; false when a piece is split or cannot run there.
bool OverlapSimulator::place_pieces(const std::int32_t* assignment, Workspace& workspace) const {
    const PieceGraph& graph = m_costs.pieces;
    for (std::int32_t p = 0; p < graph.pieces; ++p) workspace.lane[p] = assignment[m_first_group[p]];
    for (std::int32_t g = 0; g < groups(); ++g) {
        if (workspace.lane[m_costs.piece_of[g]] != assignment[g]) return false;
    }
    std::fill(workspace.busy.begin(), workspace.busy.end(), unused);
    for (std::int32_t p = 0; p < graph.pieces; ++p) {
        if (!graph.runs[p]) continue;
        const std::int32_t lane = workspace.lane[p];
        if (workspace.busy[lane] == unused) workspace.busy[lane] = graph.launch_seconds[lane];
        workspace.busy[lane] += graph.seconds[static_cast<std::size_t>(p) * graph.lanes + lane];
    }
    return true;
}

bool OverlapSimulator::hands_over_lost_shape_between(Workspace& workspace) const {
    if (m_costs.links.empty()) return false;
    for (std::size_t node = 0; node < m_costs.node_group.size(); ++node) {
        const std::int32_t fine = workspace.cutter.submodel_of()[m_costs.piece_of[m_costs.node_group[node]]];
        workspace.submodel_of_node[node] = fine < 0 ? fine : workspace.of_fine[fine];
    }
    return hands_over_lost_shape(m_costs.links, workspace.submodel_of_node.data(), workspace.lost);
}

// Keeps a scheduled cut if it is faster than the best so far, or as fast with fewer submodels.
void OverlapSimulator::consider(Workspace& workspace, const SubmodelGraph& graph,
                                const SubmodelTimes& times) const {
    const bool has_fewer = graph.lane.size() < workspace.best_lane.size();
    const bool is_better = times.makespan * up_to_rounding < workspace.best ||
                           (has_fewer && times.makespan <= workspace.best * up_to_rounding);
    if ((workspace.best != forever && !is_better) || hands_over_lost_shape_between(workspace)) return;
    workspace.best = times.makespan;
    workspace.best_of_fine = workspace.of_fine;
    workspace.best_lane = graph.lane;
    workspace.best_start = times.start;
    workspace.best_finish = times.finish;
}

double OverlapSimulator::evaluate(const std::int32_t* assignment, Workspace& workspace, double limit) const {
    workspace.best = forever;
    workspace.best_lane.clear();
    if (!place_pieces(assignment, workspace)) return forever;
    std::int32_t used = 0;
    double longest = 0;
    for (std::int32_t lane = 0; lane < lanes(); ++lane) {
        longest = std::max(longest, workspace.busy[lane]);
        if (workspace.busy[lane] == unused) continue;
        ++used;
    }
    const double begin = used > 1 ? m_costs.mix_seconds : 0.0;
    // No lane is done before it has done its work: what is slower than the limit by that need not be cut.
    if (begin + longest > limit * up_to_rounding) return begin + longest;
    if (!workspace.cutter.cut(workspace.lane.data(), workspace.fine)) return forever;
    const std::int32_t count = workspace.fine.size();
    workspace.of_fine.resize(count);
    for (std::int32_t s = 0; s < count; ++s) workspace.of_fine[s] = s;
    workspace.scheduler.schedule(workspace.fine, begin, workspace.times);
    consider(workspace, workspace.fine, workspace.times);
    SubmodelTimes& times = workspace.joined_times;
    const auto join = [&](std::int32_t fewer) {
        if (fewer == count) return;
        if (!workspace.cutter.join(workspace.fine, workspace.of_fine, fewer, workspace.joined)) return;
        workspace.scheduler.schedule(workspace.joined, begin, times);
        consider(workspace, workspace.joined, times);
    };
    join(workspace.scheduler.join_idle_cuts(workspace.fine, workspace.times, workspace.of_fine));
    join(workspace.cutter.join_by_depth(workspace.fine, workspace.of_fine));
    return workspace.best;
}

// What a breakdown tells beyond the latency, from the best cut of the workspace.
void OverlapSimulator::fill(const std::int32_t* assignment, const Workspace& workspace,
                            Breakdown& result) const {
    const PieceGraph& graph = m_costs.pieces;
    constexpr std::int32_t none = -1;
    std::vector<std::int32_t> number(workspace.best_lane.size(), none);
    for (std::int32_t g = 0; g < groups(); ++g) {
        result.op_seconds += m_costs.group_seconds[static_cast<std::size_t>(g) * lanes() + assignment[g]];
        const std::int32_t fine = workspace.cutter.submodel_of()[m_costs.piece_of[g]];
        if (fine < 0) continue;
        const std::int32_t best = workspace.best_of_fine[fine];
        if (number[best] == none) {
            number[best] = result.subgraphs++;
            result.lane_of.push_back(workspace.best_lane[best]);
            result.start_seconds.push_back(workspace.best_start[best]);
            result.finish_seconds.push_back(workspace.best_finish[best]);
            result.launch_seconds += graph.launch_seconds[workspace.best_lane[best]];
            result.device_seconds[workspace.best_lane[best]] +=
                workspace.best_finish[best] - workspace.best_start[best];
        }
        result.subgraph_of[g] = number[best];
    }
    std::vector<std::int64_t> received(lanes(), none);  // the tensor that each lane received last
    for (std::size_t t = 0; t < graph.tensor_producer.size(); ++t) {
        const std::int32_t from = workspace.lane[graph.tensor_producer[t]];
        for (std::int32_t e = graph.tensor_offsets[t]; e < graph.tensor_offsets[t + 1]; ++e) {
            const std::int32_t to = workspace.lane[graph.tensor_consumers[e]];
            if (to == from || received[to] == static_cast<std::int64_t>(t)) continue;
            received[to] = static_cast<std::int64_t>(t);
            result.transfer_seconds += graph.transfer_seconds(t, from, to);
        }
    }
}

double OverlapSimulator::simulate(const std::int32_t* assignment, double limit) const {
    check(assignment);
    std::unique_ptr<Workspace> workspace = take_workspace();
    const double latency = evaluate(assignment, *workspace, limit);
    m_idle.give_back(std::move(workspace));
    return latency;
}

Breakdown OverlapSimulator::breakdown(const std::int32_t* assignment) const {
    check(assignment);
    Breakdown result;
    result.device_seconds.resize(lanes());
    result.subgraph_of.assign(groups(), -1);
    std::unique_ptr<Workspace> workspace = take_workspace();
    result.latency_seconds = evaluate(assignment, *workspace, no_limit);
    if (result.latency_seconds != forever) fill(assignment, *workspace, result);
    m_idle.give_back(std::move(workspace));
    return result;
}

void OverlapSimulator::simulate_batch(const std::int32_t* assignments, std::size_t count,
                                      std::int32_t threads, double* latencies, double limit) const {
    const auto size = static_cast<std::size_t>(groups());
    for (std::size_t i = 0; i < count; ++i) check(assignments + i * size);
    in_slices(count, size, threads, [&](const auto& take) {
        std::unique_ptr<Workspace> workspace = take_workspace();
        for (std::size_t begin, end; take(begin, end);) {
            for (std::size_t i = begin; i < end; ++i) {
                latencies[i] = evaluate(assignments + i * size, *workspace, limit);
            }
        }
        m_idle.give_back(std::move(workspace));
    });
}

std::unique_ptr<OverlapSimulator::Workspace> OverlapSimulator::take_workspace() const {
    return m_idle.take([&] { return std::make_unique<Workspace>(m_costs); });
}

}  // namespace ov_autoplace
