// Whether a graph's subgraphs still hang together while edges are cut.
//
// A choice of edges is kept over which every subgraph hangs together: a spanning forest in the beginning,
// made where possible of those edges that will be cut last. Any other edge is cut for nothing. When a chosen
// one is cut, two questions are asked in turns, an edge at a time, until one of them is answered: from both
// ends of the cut, over all edges, whether the searches meet; and over chosen edges only, whether one of the
// two sides is small. What is then known to join the sides is chosen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ov_autoplace/partition_graph.hpp"

namespace ov_autoplace {

// Owns all working memory, so every thread needs its own.
class SpanningEdges {
public:
    // Keeps references; `boundary` tells per edge of the graph whether it is cut.
    SpanningEdges(const PartitionGraph& graph, const std::vector<std::uint8_t>& boundary);

    // Spans anew the subgraphs that hold `nodes`, given whole; with short edges where possible, because rule
    // 2 cuts those first that skip far ahead.
    void span(const std::int32_t* nodes, std::size_t count);
    // The same where the order of the cuts is known better: after start(), one call of add_inputs() per node
    // chooses from the edges that end there, last to be cut first.
    void start(const std::int32_t* nodes, std::size_t count);
    void add_inputs(std::int32_t node);

    bool is_chosen(std::int32_t edge) const { return m_is_chosen[edge] != 0; }
    // `edge`, which ends at `node`, has become a boundary, the only one that is chosen since the last call.
    // Returns the nodes of the smaller of the two subgraphs that it leaves behind, or nothing if they still
    // hang together; valid until the next call.
    const std::vector<std::int32_t>& cut(std::int32_t edge, std::int32_t node);
    // Edges followed since this was last asked.
    std::size_t take_work() { return std::exchange(m_work, 0); }

private:
    // A search from one end of a cut.
    struct Side {
        bool over_all = false;  // or over chosen edges only
        std::vector<std::int32_t> nodes;
        std::int32_t mark = 0;
        std::size_t next = 0;
        std::int32_t input = 0, inputs_end = 0, output = 0, outputs_end = 0;
    };

    enum class Step { onward, ended, met };

    void join(std::int32_t edge, std::int32_t node);
    void begin(Side& side, std::int32_t node);
    Step step(Side& side, std::int32_t other_mark);
    void choose_way(std::int32_t node);
    bool rejoin(const Side& side);

    const PartitionGraph& m_graph;
    const std::vector<std::uint8_t>& m_boundary;
    std::vector<std::uint8_t> m_is_chosen;  // per edge
    std::vector<std::int32_t> m_mark[2];    // per node: the search over chosen edges, over all, that found it
    std::int32_t m_last_mark = 0;
    Side m_sides[4];
    // Per node found over all edges: the edge by which it was found, and the node that this came from.
    std::vector<std::int32_t> m_edge_to, m_from;
    const std::vector<std::int32_t> m_nothing;
    std::size_t m_work = 0;

    // Scratch of span().
    std::vector<std::int32_t> m_parent;
    std::vector<std::pair<std::int32_t, std::int32_t>> m_sorted;  // edges and where they end
};

}  // namespace ov_autoplace
