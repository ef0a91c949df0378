// What placements of a cost table cost when HETERO runs them: its subgraphs strictly one after another.
//
//   latency = sum of op seconds + launch seconds of every subgraph
//           + for every tensor and every other subgraph that reads it:
//                 transfer latency + bytes * transfer seconds per byte
//
// What HETERO refuses takes forever.
//
// Under the objective rate, of many requests in flight, what counts is how long the busiest device works for
// one of them: its ops, the launches of its subgraphs and the transfers that these wait for.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "ov_autoplace/batch.hpp"
#include "ov_autoplace/partition.hpp"
#include "ov_autoplace/shape_links.hpp"

namespace ov_autoplace {

// A cost table's arrays, as the Python classes CostTable and Wiring describe them. Costs are known per group;
// HETERO cuts nodes, each of which belongs to a group. Matrices are row-major.
struct CostArrays {
    std::int32_t groups = 0;
    std::int32_t devices = 0;
    std::vector<double> op_seconds;        // [G, D]
    std::vector<std::int32_t> node_group;  // [N]
    std::vector<NodeKind> node_kind;       // [N]
    std::vector<std::int32_t> tensor_producer;
    std::vector<double> tensor_bytes;
    std::vector<std::int32_t> tensor_offsets;
    std::vector<std::int32_t> tensor_consumers;
    // Nodes bond_first[b] and bond_second[b] must share a subgraph; a placement that parts them takes
    // forever.
    std::vector<std::int32_t> bond_first;
    std::vector<std::int32_t> bond_second;
    // Edges along which the knowledge of shapes is lost, consumers ascending: see shape_links.hpp.
    std::vector<ShapeLink> links;
    std::vector<double> transfer_latency;           // [D, D]
    std::vector<double> transfer_seconds_per_byte;  // [D, D]
    std::vector<double> launch_seconds;             // [D]
    HeteroRules rules{};
    // Paid once by a placement that runs subgraphs on more than one device.
    double mix_seconds = 0;
    // The objective is rate: a placement's seconds are those of its busiest device. While several devices
    // work, which is all the time then, everything takes `corun_factor` as long; nothing idles, so that
    // mix_seconds are not paid.
    bool rate = false;
    double corun_factor = 1;
};

struct Breakdown {
    double latency_seconds = 0;
    double op_seconds = 0;
    double launch_seconds = 0;
    double transfer_seconds = 0;  // of all transfers, and what mixing devices costs once
    std::int32_t subgraphs = 0;
    // How long each device is busy; under the objective rate with the transfers that it receives.
    std::vector<double> device_seconds;
    std::vector<std::int32_t> subgraph_of;  // per group, in order of first appearance
    // Of each subgraph: where it runs and when.
    std::vector<std::int32_t> lane_of;
    std::vector<double> start_seconds, finish_seconds;
};

// An immutable cost table with everything prepared for simulating placements. Safe to use from any number
// of threads at once.
class Simulator {
public:
    // Throws std::invalid_argument for arrays that do not fit together.
    explicit Simulator(CostArrays costs);
    ~Simulator();
    Simulator(const Simulator&) = delete;
    Simulator& operator=(const Simulator&) = delete;

    std::int32_t groups() const { return m_costs.groups; }
    std::int32_t devices() const { return m_costs.devices; }

    // `assignment` holds a device index per group. All three throw std::invalid_argument for an index
    // outside the table's devices. A placement that takes more than `limit` seconds need not be simulated to
    // the end: the answer is then a lower bound of its latency, above the limit.
    double simulate(const std::int32_t* assignment, double limit = no_limit) const;
    Breakdown breakdown(const std::int32_t* assignment) const;
    // `count` assignments, one after the other, into `latencies`; threads = 0 takes one per core.
    void simulate_batch(const std::int32_t* assignments, std::size_t count, std::int32_t threads,
                        double* latencies, double limit = no_limit) const;
    static constexpr double no_limit = std::numeric_limits<double>::infinity();

private:
    struct Workspace;

    void check(const std::int32_t* assignment) const;
    double evaluate(const std::int32_t* assignment, Workspace& workspace, double limit,
                    Breakdown* breakdown) const;
    double seconds(const std::int32_t* assignment, Workspace& workspace, bool refused,
                   Breakdown* breakdown) const;
    void lay_out(const std::int32_t* assignment, Workspace& workspace, Breakdown& result) const;
    std::unique_ptr<Workspace> take_workspace() const;

    CostArrays m_costs;
    std::vector<std::int32_t> m_moving;          // tensors that are no constants
    std::vector<std::int32_t> m_representative;  // per group: the node whose subgraph counts as the group's
    PartitionGraph m_graph;
    mutable Pool<Workspace> m_idle;
};

}  // namespace ov_autoplace
