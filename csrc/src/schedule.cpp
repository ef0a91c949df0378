#include "ov_autoplace/schedule.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

namespace ov_autoplace {
namespace {

// Assignments that a thread takes at a time: enough to make the shared counter free.
constexpr std::size_t batch_slice = 16;

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
};

Simulator::Simulator(CostArrays costs) : m_costs(std::move(costs)) {
    check_sizes(m_costs);
    m_graph = PartitionGraph(m_costs.node_kind, m_costs.tensor_producer, m_costs.tensor_offsets,
                             m_costs.tensor_consumers);
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
        bound = seconds(assignment, workspace, nullptr);
        return bound > limit;
    };
    const std::int32_t subgraphs = workspace.partitioner.partition(
        workspace.devices.data(), limit < no_limit ? std::function<bool()>(hopeless) : nullptr);
    if (subgraphs == Partitioner::stopped) return bound;
    if (breakdown) breakdown->subgraphs = subgraphs;
    return seconds(assignment, workspace, breakdown);
}

// What the subgraphs cost that the workspace's partitioner holds.
double Simulator::seconds(const std::int32_t* assignment, Workspace& workspace, Breakdown* breakdown) const {
    const std::int32_t* device = workspace.devices.data();
    const std::int32_t* root = workspace.partitioner.roots().data();

    constexpr std::int32_t unseen = -1;
    std::fill(workspace.last_seen.begin(), workspace.last_seen.end(), unseen);
    double transfers = 0;
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
            transfers += m_costs.transfer_latency[pair] +
                         m_costs.transfer_seconds_per_byte[pair] * m_costs.tensor_bytes[t];
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
        if (breakdown) breakdown->device_seconds[device[node]] += m_costs.launch_seconds[device[node]];
    }
    if (mixed) transfers += m_costs.mix_seconds;
    for (std::int32_t g = 0; g < m_costs.groups; ++g) {
        const double seconds =
            m_costs.op_seconds[static_cast<std::size_t>(g) * m_costs.devices + assignment[g]];
        ops += seconds;
        if (breakdown) {
            breakdown->device_seconds[assignment[g]] += seconds;
            // A group of constants that no subgraph keeps runs nowhere: it gets a number of its own.
            std::int32_t& number = workspace.last_seen[root[m_representative[g]]];
            if (number == unseen) number = count++;
            breakdown->subgraph_of[g] = number;
        }
    }
    if (breakdown) {
        breakdown->op_seconds = ops;
        breakdown->launch_seconds = launches;
        breakdown->transfer_seconds = transfers;
    }
    return ops + launches + transfers;
}

double Simulator::simulate(const std::int32_t* assignment, double limit) const {
    check(assignment);
    std::unique_ptr<Workspace> workspace = take_workspace();
    const double latency = evaluate(assignment, *workspace, limit, nullptr);
    return_workspace(std::move(workspace));
    return latency;
}

Breakdown Simulator::breakdown(const std::int32_t* assignment) const {
    check(assignment);
    Breakdown result;
    result.device_seconds.resize(m_costs.devices);
    result.subgraph_of.resize(m_costs.groups);
    std::unique_ptr<Workspace> workspace = take_workspace();
    evaluate(assignment, *workspace, no_limit, &result);
    return_workspace(std::move(workspace));
    return result;
}

void Simulator::simulate_batch(const std::int32_t* assignments, std::size_t count, std::int32_t threads,
                               double* latencies, double limit) const {
    if (threads < 0) throw std::invalid_argument("threads is negative: " + std::to_string(threads));
    const auto groups = static_cast<std::size_t>(m_costs.groups);
    for (std::size_t i = 0; i < count; ++i) check(assignments + i * groups);

    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex failing;
    const auto work = [&]() noexcept {
        try {
            std::unique_ptr<Workspace> workspace = take_workspace();
            for (std::size_t begin = next.fetch_add(batch_slice); begin < count;
                 begin = next.fetch_add(batch_slice)) {
                for (std::size_t i = begin; i < std::min(begin + batch_slice, count); ++i) {
                    latencies[i] = evaluate(assignments + i * groups, *workspace, limit, nullptr);
                }
            }
            return_workspace(std::move(workspace));
        } catch (...) {
            const std::lock_guard lock(failing);
            failure = std::current_exception();
            next = count;
        }
    };
    // More threads than cores would only take memory.
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    const std::size_t wanted = threads > 0 ? std::min<std::size_t>(threads, cores) : cores;
    const std::size_t helpers = std::min(wanted, (count + batch_slice - 1) / batch_slice);
    std::vector<std::thread> pool;
    pool.reserve(helpers);
    try {
        for (std::size_t i = 1; i < helpers; ++i) pool.emplace_back(work);
    } catch (const std::system_error&) {
        // No more threads to be had: those that started, and this one, do the work.
    }
    work();
    for (std::thread& thread : pool) thread.join();
    if (failure) std::rethrow_exception(failure);
}

std::unique_ptr<Simulator::Workspace> Simulator::take_workspace() const {
    {
        const std::lock_guard lock(m_mutex);
        if (!m_idle.empty()) {
            std::unique_ptr<Workspace> workspace = std::move(m_idle.back());
            m_idle.pop_back();
            return workspace;
        }
    }
    return std::make_unique<Workspace>(m_graph);
}

void Simulator::return_workspace(std::unique_ptr<Workspace> workspace) const {
    const std::lock_guard lock(m_mutex);
    m_idle.push_back(std::move(workspace));
}

}  // namespace ov_autoplace
