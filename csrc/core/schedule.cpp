#include "ov_autoplace/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>

namespace ov_autoplace {
namespace {

void check_size(std::size_t found, std::size_t expected, const char* name) {
    if (found == expected) return;
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(found) + " entries instead of " +
                                std::to_string(expected));
}

void check_sizes(const CostArrays& costs) {
    const auto groups = static_cast<std::size_t>(costs.groups),
               devices = static_cast<std::size_t>(costs.devices);
    const std::size_t tensors = costs.tensor_producer.size();
    if (costs.devices < 1) throw std::invalid_argument("a cost table needs at least one device");
    check_size(costs.op_seconds.size(), groups * devices, "op_seconds");
    check_size(costs.node_kind.size(), costs.node_group.size(), "node_kind");
    check_size(costs.tensor_bytes.size(), tensors, "tensor_bytes");
    check_size(costs.tensor_offsets.size(), tensors + 1, "tensor_offsets");
    check_size(costs.transfer_latency.size(), devices * devices, "transfer_latency");
    check_size(costs.transfer_seconds_per_byte.size(), devices * devices, "transfer_seconds_per_byte");
    check_size(costs.launch_seconds.size(), devices, "launch_seconds");
    if (!(costs.mix_seconds >= 0)) throw std::invalid_argument("mix_seconds is negative or not a number");
    if (!(costs.corun_factor >= 1 && std::isfinite(costs.corun_factor))) {
        throw std::invalid_argument("corun_factor is below 1 or not finite");
    }
    check_size(costs.bond_second.size(), costs.bond_first.size(), "bond_second");
    for (const auto* ends : {&costs.bond_first, &costs.bond_second}) {
        for (const std::int32_t node : *ends) {
            if (node < 0 || static_cast<std::size_t>(node) >= costs.node_group.size()) {
                throw std::invalid_argument("a bond names node " + std::to_string(node));
            }
        }
    }
    for (const ShapeLink& link : costs.links) {
        for (const std::int32_t node : {link.source, link.target}) {
            if (node < 0 || static_cast<std::size_t>(node) >= costs.node_group.size()) {
                throw std::invalid_argument("a link names node " + std::to_string(node));
            }
        }
    }
    for (const std::int32_t group : costs.node_group) {
        if (group < 0 || group >= costs.groups) {
            throw std::invalid_argument("node_group names group " + std::to_string(group) +
                                        "; the table has " + std::to_string(costs.groups));
        }
    }
}

}  // namespace

struct Simulator::Workspace {
    explicit Workspace(const PartitionGraph& graph)
        : partitioner(graph), devices(graph.size()), last_seen(graph.size(), -1), lost(graph.size(), 0) {}

    Partitioner partitioner;
    std::vector<std::int32_t> devices;    // per node of the partition graph
    std::vector<std::int32_t> last_seen;  // per subgraph: the tensor that it received last
    std::vector<std::uint8_t> lost;       // per node: scratch of hands_over_lost_shape
    std::vector<double> busy;             // per device, under the objective rate
};

Simulator::Simulator(CostArrays costs) : m_costs(std::move(costs)) {
    check_sizes(m_costs);
    m_graph = PartitionGraph(m_costs.node_kind, m_costs.tensor_producer, m_costs.tensor_offsets,
                             m_costs.tensor_consumers, m_costs.rules);
    const auto tensors = static_cast<std::int32_t>(m_costs.tensor_producer.size());
    for (std::int32_t t = 0; t < tensors; ++t) {
        if (m_graph.kinds[m_costs.tensor_producer[t]] != NodeKind::constant) m_moving.push_back(t);
    }
    // The first op; a group without any is as good as its first node.
    constexpr std::int32_t unknown = -1;
    m_representative.assign(m_costs.groups, unknown);
    for (const bool ops_only : {true, false}) {
        for (std::int32_t node = 0; node < m_graph.size(); ++node) {
            std::int32_t& representative = m_representative[m_costs.node_group[node]];
            const bool is_op = m_graph.kinds[node] == NodeKind::op || m_graph.kinds[node] == NodeKind::group;
            if (representative == unknown && (is_op || !ops_only)) representative = node;
        }
    }
    for (std::int32_t g = 0; g < m_costs.groups; ++g) {
        if (m_representative[g] == unknown) {
            throw std::invalid_argument("group " + std::to_string(g) + " has no node");
        }
    }
}

Simulator::~Simulator() = default;

void Simulator::check(const std::int32_t* assignment) const {
    for (std::int32_t g = 0; g < m_costs.groups; ++g) {
        if (assignment[g] < 0 || assignment[g] >= m_costs.devices) {
            throw std::invalid_argument("group " + std::to_string(g) + " is placed on device " +
                                        std::to_string(assignment[g]) + "; the table has " +
                                        std::to_string(m_costs.devices));
        }
    }
}

double Simulator::evaluate(const std::int32_t* assignment, Workspace& workspace, double limit,
                           Breakdown* breakdown) const {
    for (std::int32_t node = 0; node < m_graph.size(); ++node) {
        workspace.devices[node] = assignment[m_costs.node_group[node]];
    }
    // No cost is negative, so every term grows or stays when a subgraph is split: what the subgraphs found so
    // far cost is a bound.
    double bound = 0;
    const auto hopeless = [&] {
        bound = seconds(assignment, workspace, false, nullptr);
        return bound > limit;
    };
    const std::int32_t subgraphs = workspace.partitioner.partition(
        workspace.devices.data(), limit < no_limit ? std::function<bool()>(hopeless) : nullptr);
    if (subgraphs == Partitioner::stopped) return bound;
    return seconds(assignment, workspace, subgraphs == Partitioner::refused, breakdown);
}

// What the subgraphs cost that the workspace's partitioner holds.
double Simulator::seconds(const std::int32_t* assignment, Workspace& workspace, bool refused,
                          Breakdown* breakdown) const {
    const std::int32_t* device = workspace.devices.data();
    const std::int32_t* root = workspace.partitioner.roots().data();

    constexpr std::int32_t unseen = -1;
    std::fill(workspace.last_seen.begin(), workspace.last_seen.end(), unseen);
    std::vector<double>& busy = workspace.busy;
    busy.assign(m_costs.devices, 0);
    double transfers = refused ? std::numeric_limits<double>::infinity() : 0;
    for (std::size_t b = 0; b < m_costs.bond_first.size(); ++b) {
        if (root[m_costs.bond_first[b]] != root[m_costs.bond_second[b]]) {
            transfers = std::numeric_limits<double>::infinity();
        }
    }
    if (hands_over_lost_shape(m_costs.links, root, workspace.lost)) {
        transfers = std::numeric_limits<double>::infinity();
    }
    for (const std::int32_t t : m_moving) {
        const std::int32_t producer = m_costs.tensor_producer[t];
        for (std::int32_t e = m_costs.tensor_offsets[t]; e < m_costs.tensor_offsets[t + 1]; ++e) {
            const std::int32_t consumer = m_costs.tensor_consumers[e];
            if (root[consumer] == root[producer] || workspace.last_seen[root[consumer]] == t) continue;
            workspace.last_seen[root[consumer]] = t;
            const std::int32_t pair = device[producer] * m_costs.devices + device[consumer];
            const double seconds = m_costs.transfer_latency[pair] +
                                   m_costs.transfer_seconds_per_byte[pair] * m_costs.tensor_bytes[t];
            transfers += seconds;
            busy[device[consumer]] += seconds;
        }
    }
    // From here on last_seen holds the dense number of each subgraph. Subgraphs of constants only are not
    // run.
    std::fill(workspace.last_seen.begin(), workspace.last_seen.end(), unseen);
    double ops = 0, launches = 0;
    std::int32_t count = 0, first_device = unseen;
    bool mixed = false;
    for (std::int32_t node = 0; node < m_graph.size(); ++node) {
        if (m_graph.kinds[node] == NodeKind::constant || workspace.last_seen[root[node]] != unseen) continue;
        workspace.last_seen[root[node]] = count++;
        if (first_device == unseen) first_device = device[node];
        mixed = mixed || device[node] != first_device;
        launches += m_costs.launch_seconds[device[node]];
        busy[device[node]] += m_costs.launch_seconds[device[node]];
        if (breakdown) breakdown->device_seconds[device[node]] += m_costs.launch_seconds[device[node]];
    }
    if (mixed) transfers += m_costs.mix_seconds;
    if (breakdown) breakdown->subgraphs = count;
    for (std::int32_t g = 0; g < m_costs.groups; ++g) {
        const double seconds =
            m_costs.op_seconds[static_cast<std::size_t>(g) * m_costs.devices + assignment[g]];
        ops += seconds;
        busy[assignment[g]] += seconds;
        if (breakdown) {
            breakdown->device_seconds[assignment[g]] += seconds;
            // A group of constants that no subgraph keeps runs nowhere: it gets a number of its own.
            std::int32_t& number = workspace.last_seen[root[m_representative[g]]];
            if (number == unseen) number = count++;
            breakdown->subgraph_of[g] = number;
        }
    }
    if (breakdown) {
        breakdown->latency_seconds = ops + launches + transfers;
        breakdown->op_seconds = ops;
        breakdown->launch_seconds = launches;
        breakdown->transfer_seconds = transfers;
    }
    if (!m_costs.rate) return ops + launches + transfers;
    // What is refused, parts a bond or loses a shape cannot run at all.
    const double factor = std::isinf(transfers) ? transfers : mixed ? m_costs.corun_factor : 1;
    for (double& seconds : busy) seconds = seconds > 0 ? seconds * factor : 0;
    if (breakdown) breakdown->device_seconds = busy;
    return std::max(*std::max_element(busy.begin(), busy.end()), std::isinf(factor) ? factor : 0);
}

// When each subgraph runs, after seconds(): one after the other, producers first, each after what is sent to
// it.
void Simulator::lay_out(const std::int32_t* assignment, Workspace& workspace, Breakdown& result) const {
    const std::int32_t count = result.subgraphs;
    const auto number = [&](std::int32_t node) {
        return workspace.last_seen[workspace.partitioner.roots()[node]];
    };
    std::vector<double> works(count), receives(count);
    result.lane_of.resize(count);
    for (std::int32_t node = 0; node < m_graph.size(); ++node) {
        if (m_graph.kinds[node] == NodeKind::constant) continue;
        result.lane_of[number(node)] = workspace.devices[node];
        works[number(node)] = m_costs.launch_seconds[workspace.devices[node]];
    }
    for (std::int32_t g = 0; g < m_costs.groups; ++g) {
        // A group of constants that runs nowhere still costs what the table says.
        const std::int32_t subgraph = std::min(result.subgraph_of[g], count - 1);
        if (subgraph < 0) continue;
        works[subgraph] += m_costs.op_seconds[static_cast<std::size_t>(g) * m_costs.devices + assignment[g]];
    }
    std::vector<std::pair<std::int32_t, std::int32_t>> sends;
    std::vector<std::int32_t> received(count, -1);  // the tensor that each subgraph received last
    double now = 0;
    for (const std::int32_t t : m_moving) {
        const std::int32_t producer = m_costs.tensor_producer[t], from = number(producer);
        for (std::int32_t e = m_costs.tensor_offsets[t]; e < m_costs.tensor_offsets[t + 1]; ++e) {
            const std::int32_t consumer = m_costs.tensor_consumers[e], to = number(consumer);
            if (from == to || received[to] == t) continue;
            received[to] = t;
            sends.emplace_back(from, to);
            const std::int32_t pair =
                workspace.devices[producer] * m_costs.devices + workspace.devices[consumer];
            receives[to] += m_costs.transfer_latency[pair] +
                            m_costs.transfer_seconds_per_byte[pair] * m_costs.tensor_bytes[t];
        }
    }
    if (std::adjacent_find(result.lane_of.begin(), result.lane_of.end(), std::not_equal_to<>()) !=
        result.lane_of.end()) {
        now += m_costs.mix_seconds;
    }
    std::sort(sends.begin(), sends.end());
    std::vector<std::int32_t> waits(count);
    for (const auto& send : sends) ++waits[send.second];
    // The lowest number first of those that wait for none.
    std::vector<std::int32_t> ready;
    for (std::int32_t s = count - 1; s >= 0; --s) {
        if (waits[s] == 0) ready.push_back(s);
    }
    std::make_heap(ready.begin(), ready.end(), std::greater<>());
    result.start_seconds.resize(count);
    result.finish_seconds.resize(count);
    while (!ready.empty()) {
        std::pop_heap(ready.begin(), ready.end(), std::greater<>());
        const std::int32_t s = ready.back();
        ready.pop_back();
        result.start_seconds[s] = now += receives[s];
        result.finish_seconds[s] = now += works[s];
        for (auto send = std::lower_bound(sends.begin(), sends.end(), std::make_pair(s, 0));
             send != sends.end() && send->first == s; ++send) {
            if (--waits[send->second] > 0) continue;
            ready.push_back(send->second);
            std::push_heap(ready.begin(), ready.end(), std::greater<>());
        }
    }
}

double Simulator::simulate(const std::int32_t* assignment, double limit) const {
    check(assignment);
    std::unique_ptr<Workspace> workspace = take_workspace();
    const double latency = evaluate(assignment, *workspace, limit, nullptr);
    m_idle.give_back(std::move(workspace));
    return latency;
}

Breakdown Simulator::breakdown(const std::int32_t* assignment) const {
    check(assignment);
    Breakdown result;
    result.device_seconds.resize(m_costs.devices);
    result.subgraph_of.resize(m_costs.groups);
    std::unique_ptr<Workspace> workspace = take_workspace();
    evaluate(assignment, *workspace, no_limit, &result);
    lay_out(assignment, *workspace, result);
    m_idle.give_back(std::move(workspace));
    return result;
}

void Simulator::simulate_batch(const std::int32_t* assignments, std::size_t count, std::int32_t threads,
                               double* latencies, double limit) const {
    const auto groups = static_cast<std::size_t>(m_costs.groups);
    for (std::size_t i = 0; i < count; ++i) check(assignments + i * groups);
    in_slices(count, groups, threads, [&](const auto& take) {
        std::unique_ptr<Workspace> workspace = take_workspace();
        for (std::size_t begin, end; take(begin, end);) {
            for (std::size_t i = begin; i < end; ++i) {
                latencies[i] = evaluate(assignments + i * groups, *workspace, limit, nullptr);
            }
        }
        m_idle.give_back(std::move(workspace));
    });
}

std::unique_ptr<Simulator::Workspace> Simulator::take_workspace() const {
    return m_idle.take([&] { return std::make_unique<Workspace>(m_graph); });
}

}  // namespace ov_autoplace
