// How a model that is placed on lanes is cut into submodels: convex ones, each of which ends where another
// lane needs what it makes.
//
// The finest cut that can be worth anything: two pieces on one lane share a submodel if the same pieces of
// other lanes wait for them and they wait for the same pieces of other lanes. Such submodels are convex and
// do not wait for each other in a cycle: a path that leaves a lane and comes back passes a piece for which
// its end waits and its beginning cannot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ov_autoplace {

// P pieces on L lanes that exchange tensors. A piece is what no cut may part: a group, as a rule. Producers
// come before consumers. Matrices are row-major.
struct PieceGraph {
    std::int32_t pieces = 0;
    std::int32_t lanes = 0;
    std::vector<double> seconds;     // [P, L]
    std::vector<std::uint8_t> runs;  // [P]: inputs, outputs and constants alone are in no submodel
    std::vector<std::int32_t> tensor_producer;
    std::vector<double> tensor_bytes;
    std::vector<std::int32_t> tensor_offsets, tensor_consumers;       // CSR of consuming pieces
    std::vector<double> transfer_latency, transfer_seconds_per_byte;  // [L, L]; the diagonal is not used
    std::vector<double> launch_seconds;                               // [L]

    double transfer_seconds(std::size_t tensor, std::int32_t from, std::int32_t to) const {
        const std::size_t way = static_cast<std::size_t>(from) * lanes + to;
        return transfer_latency[way] + transfer_seconds_per_byte[way] * tensor_bytes[tensor];
    }
};

// S submodels and what they wait for. An arc says that its target may start `delay` seconds after its source
// has finished; there is one between any two submodels at most.
struct SubmodelGraph {
    struct Arc {
        std::int32_t source, target;
        double delay;
    };
    std::vector<std::int32_t> lane;
    std::vector<double> work;  // seconds of the launch and of all that it runs
    std::vector<Arc> arcs;     // by source
    std::vector<std::int32_t> out_offsets;
    std::vector<std::int32_t> in_offsets, in_arcs;  // CSR of arcs by target
    std::vector<std::int32_t> order;                // producers before consumers

    std::int32_t size() const { return static_cast<std::int32_t>(lane.size()); }
};

// Cuts placements of one graph; owns all working memory, so every thread needs its own.
class SubmodelCutter {
public:
    // Keeps a reference to `graph`.
    explicit SubmodelCutter(const PieceGraph& graph);

    // The finest cut for a lane per piece: into submodel_of() and `result`; false when a piece cannot run
    // where it is.
    bool cut(const std::int32_t* lane, SubmodelGraph& result);
    // Submodel of each piece in the last cut, -1 = none.
    const std::vector<std::int32_t>& submodel_of() const { return m_submodel_of; }

    // `fine` with its submodels joined to `count` ones as `joined` says (one entry per submodel of `fine`);
    // those that are joined must be on one lane. False when the result waits for itself.
    bool join(const SubmodelGraph& fine, const std::vector<std::int32_t>& joined, std::int32_t count,
              SubmodelGraph& result);

    // The coarsest cut that is still free of cycles by construction: submodels of one lane with as many
    // transfers on the longest way to them, and from them. Into `joined`; returns how many they are.
    std::int32_t join_by_depth(const SubmodelGraph& fine, std::vector<std::int32_t>& joined);

private:
    void mark_relatives(const std::int32_t* lane, bool ancestors);
    std::int32_t number(const std::vector<std::uint64_t>& keys, std::vector<std::int32_t>& numbers);
    bool build(const std::int32_t* lane, SubmodelGraph& result);
    bool connect(SubmodelGraph& graph);

    const PieceGraph& m_graph;
    std::vector<std::int32_t> m_in_offsets, m_in_pieces;    // distinct producers of each piece
    std::vector<std::int32_t> m_out_offsets, m_out_pieces;  // distinct consumers
    std::vector<std::int32_t> m_submodel_of;
    std::vector<std::uint64_t> m_class;             // what tells the classes of pieces apart
    std::vector<std::uint64_t> m_relatives, m_bit;  // of each piece, 64 relatives at a time
    std::vector<std::uint64_t> m_on_lane;
    std::vector<std::int32_t> m_marked;
    std::vector<std::uint64_t> m_key;
    std::vector<std::int32_t> m_slot;
    std::vector<SubmodelGraph::Arc> m_arcs;
    std::vector<std::int32_t> m_position, m_stamp, m_depth_in, m_depth_out;
    std::vector<std::uint64_t> m_depths;  // lane and both depths of each submodel
};

}  // namespace ov_autoplace
