// The second step of HETERO's partitioning (rule 2 in partition.hpp): where a subgraph depends on itself
// through a boundary, edges on the way back in become boundaries too.
//
// HETERO looks at the whole model in every round. The Partitioner calls split_once() for the first rounds,
// with a fresh search for cycles in between: most cycles end there. What happens to a subgraph depends on
// nothing but the graph and its own nodes and boundaries, though: not on how the rest is cut. So each
// subgraph is followed alone, from its first round to its last, and only what the last round changed is
// looked at:
//   * Dependencies are those of the graph and never change. A node is fed back while some boundary that
//     leaves its subgraph leads to it; cuts only take such boundaries away. What then becomes free is found
//     going down the graph from where they ended.
//   * Of a subgraph that falls apart, the larger piece goes on; the others are subgraphs to be followed
//     later.
//   * The ways by which a shared origin is reached (see decide()) only become more.
// A bit per subgraph lets 64 of them be followed at once.
//
// Under HeteroRules::refusing a detour is something else (see below), and detours may become fewer. So nobody
// is followed: the Partitioner calls split_once() until nothing changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "ov_autoplace/partition_graph.hpp"
#include "ov_autoplace/spanning_edges.hpp"

namespace ov_autoplace {

// Owns all working memory, so every thread needs its own.
class FeedbackSplitter {
public:
    // Keeps references; `boundary` tells per edge whether it is cut, and is kept up to date.
    FeedbackSplitter(const PartitionGraph& graph, std::vector<std::uint8_t>& boundary,
                     SpanningEdges& spanning);

    // Splits subgraphs that wait for each other in a cycle, or for themselves, until nothing changes.
    // `nodes` holds all their nodes in ascending order, `root` the smallest node of each node's subgraph.
    // `spanning` must span them. `stop`, where given, is asked after every round, and told how many edges
    // were looked at; false when it ended the search.
    bool split(const std::int32_t* nodes, std::size_t count, const std::vector<std::int32_t>& root,
               const std::function<bool(std::size_t)>& stop);

    // The first round of split() alone, for which nothing must be spanned; false when it cuts nothing.
    bool split_once(const std::int32_t* nodes, std::size_t count, const std::vector<std::int32_t>& root);

private:
    static constexpr std::size_t bits_per_word = 64;
    // How boundaries enter a node's subgraph at the node or above it.
    enum Entry : std::uint8_t { none, from_graph_inputs, from_ops };
    struct Part {
        std::int32_t id, first, last;  // `first` and `last` bound its nodes
    };

    void decide_all();
    void collect_parts(const std::int32_t* nodes, std::size_t count, const std::vector<std::int32_t>& root);
    bool follow(const Part* parts, std::size_t count, const std::function<bool(std::size_t)>& stop);
    void begin(const Part* parts, std::size_t count);
    void mark_feedback();
    void decide(std::int32_t node);
    bool is_detour_in(std::int32_t node) const { return !m_refusing && m_entered[node]; }
    bool is_wanted(std::int32_t edge, std::int32_t source, std::int32_t node);
    bool shares_spring(std::int32_t source, std::int32_t node);
    void find_springs();
    void apply_cuts();
    void move_out(const std::vector<std::int32_t>& nodes);
    void enter(std::int32_t node);
    void sweep();
    bool renew_feedback(std::int32_t node);
    bool renew_detours(std::int32_t node);
    void end();

    Entry entry_of(std::int32_t node) const;
    std::uint64_t feeding(std::int32_t node) const;
    bool is_fed_back(std::int32_t node) const { return (m_word[node] & m_own[node]) != 0; }
    bool is_within(std::int32_t node) const { return node >= m_first && node <= m_last && m_part[node] >= 0; }
    std::uint64_t* springs(std::int32_t node) { return &m_springs[m_row[node] * m_words]; }
    std::uint64_t* detours(std::int32_t node) { return &m_detours[m_row[node] * m_words]; }
    void touch(std::int32_t node);
    void touch_readers(std::int32_t node);
    void question(std::int32_t node);

    const PartitionGraph& m_graph;
    const bool m_refusing;
    std::vector<std::uint8_t>& m_boundary;
    SpanningEdges& m_spanning;

    // The cycle.
    const std::int32_t* m_nodes = nullptr;
    std::size_t m_count = 0;
    std::vector<std::int32_t> m_part;  // per node: its subgraph, or -1 outside of the cycle
    std::int32_t m_parts = 0;
    std::vector<Part> m_now, m_later;  // subgraphs to be followed

    // Those that are followed together; m_first to m_last is where their nodes are.
    std::int32_t m_first = 0, m_last = -1;
    std::size_t m_window_begin = 0, m_window_end = 0;  // in m_nodes
    std::vector<std::uint64_t> m_bit_of_part;
    std::vector<std::uint64_t> m_own;          // per node: the bit of its subgraph, or 0
    std::vector<std::uint64_t> m_word;         // per node: the subgraphs of which a boundary leads to it
    std::vector<Entry> m_entry;                // per node that is not fed back
    std::vector<std::uint8_t> m_entered;       // per node: a boundary from another subgraph ends here
    std::vector<std::uint8_t> m_questioned;    // per node: is in m_questions
    std::vector<std::int32_t> m_questions;     // nodes whose inputs may have to be cut
    std::vector<std::int32_t> m_cuts, m_ends;  // edges to cut in this round, and where they end
    std::vector<std::uint64_t> m_touched;      // bit per node: its words may have changed
    std::size_t m_touched_begin = 0, m_touched_end = 0;  // outside of these words no bit is set

    // A detour leads through a boundary that leaves the subgraph, and from OpenVINO 2026.3.0 on also through
    // one that enters it. Before, boundaries that enter are springs themselves. Bits of springs, m_words per
    // row; a row per node of the window. Empty until somebody asks for them.
    std::size_t m_words = 0;
    bool m_knows_springs = false;
    std::vector<std::size_t> m_row;
    std::vector<std::uint64_t>
        m_springs;  // those above the node, or before 2026.3.0 above it in its subgraph
    std::vector<std::uint64_t> m_detours;  // those that reach it by a detour
    std::size_t m_work = 0;
};

}  // namespace ov_autoplace
