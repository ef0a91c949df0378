// What placements on lanes cost when lanes and devices work at once inside one request.
//
//   latency = makespan of the list schedule of the placement's submodels
//
// The submodels are the best of three cuts: the finest that can be worth anything, that one without cuts for
// which nobody starts earlier, and the coarsest. A tensor arrives on another lane `transfer_latency + bytes *
// transfer_seconds_per_byte` seconds after the submodel that makes it has finished, which costs neither lane
// any time; on its own lane it is there at once.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "ov_autoplace/batch.hpp"
#include "ov_autoplace/list_schedule.hpp"
#include "ov_autoplace/schedule.hpp"
#include "ov_autoplace/shape_links.hpp"
#include "ov_autoplace/submodels.hpp"

namespace ov_autoplace {

// G groups in P pieces on L lanes.
struct LaneCosts {
    std::vector<double> group_seconds;      // [G, L]
    std::vector<std::int32_t> piece_of;     // [G]: groups that share a submodel wherever they are
    PieceGraph pieces;                      // `seconds` is filled from the groups
    std::vector<std::int32_t> lane_device;  // [L]: lanes of one device have one number
    double mix_seconds = 0;                 // before everything, where more than one lane works
    double corun_factor = 1;
    std::vector<std::int32_t> node_group;  // [N]: what the links speak of
    std::vector<ShapeLink> links;          // see shape_links.hpp
};

// An immutable cost table with everything prepared for simulating placements on its lanes. Safe to use from
// any number of threads at once.
class OverlapSimulator {
public:
    // Throws std::invalid_argument for arrays that do not fit together.
    explicit OverlapSimulator(LaneCosts costs);
    ~OverlapSimulator();
    OverlapSimulator(const OverlapSimulator&) = delete;
    OverlapSimulator& operator=(const OverlapSimulator&) = delete;

    std::int32_t groups() const { return static_cast<std::int32_t>(m_costs.piece_of.size()); }
    std::int32_t lanes() const { return m_costs.pieces.lanes; }
    std::int32_t devices() const { return lanes(); }

    // `assignment` holds a lane per group. All three throw std::invalid_argument for an index outside the
    // table's lanes. A placement that takes more than `limit` seconds need not be simulated to the end: the
    // answer is then a lower bound of its latency, above the limit.
    double simulate(const std::int32_t* assignment, double limit = no_limit) const;
    Breakdown breakdown(const std::int32_t* assignment) const;
    // `count` assignments, one after the other, into `latencies`; threads = 0 takes one per core.
    void simulate_batch(const std::int32_t* assignments, std::size_t count, std::int32_t threads,
                        double* latencies, double limit = no_limit) const;
    static constexpr double no_limit = std::numeric_limits<double>::infinity();

private:
    struct Workspace;

    void check(const std::int32_t* assignment) const;
    double evaluate(const std::int32_t* assignment, Workspace& workspace, double limit) const;
    bool place_pieces(const std::int32_t* assignment, Workspace& workspace) const;
    bool hands_over_lost_shape_between(Workspace& workspace) const;
    void consider(Workspace& workspace, const SubmodelGraph& graph, const SubmodelTimes& times) const;
    void fill(const std::int32_t* assignment, const Workspace& workspace, Breakdown& result) const;
    std::unique_ptr<Workspace> take_workspace() const;

    LaneCosts m_costs;
    std::vector<std::int32_t> m_first_group;  // of each piece
    mutable Pool<Workspace> m_idle;
};

}  // namespace ov_autoplace
