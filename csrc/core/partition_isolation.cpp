#include "ov_autoplace/partition_isolation.hpp"

#include <algorithm>
#include <numeric>

namespace ov_autoplace {
namespace {

constexpr std::int32_t none = Parts::none;

}  // namespace

Isolation::Isolation(const PartitionGraph& graph, std::vector<std::uint8_t>& boundary,
                     SpanningEdges& spanning)
    : m_graph(graph),
      m_boundary(boundary),
      m_spanning(spanning),
      m_parts(graph.size()),
      m_trees(graph, m_parts),
      m_slot(graph.size()),
      m_entries(graph.size()),
      m_class(graph.size()) {}

void Isolation::start(const std::vector<std::int32_t>& root, const std::vector<std::int32_t>& cycle) {
    collect_parts(root, cycle);
    rank_candidates();
    span_parts();
    m_trees.start();
    take_work();
}

bool Isolation::cut_next() {
    const std::int32_t node = take_best();
    if (node != none) cut_off(node);
    return node != none;
}

void Isolation::name_parts(std::vector<std::int32_t>& root) {
    m_name.assign(m_parts.count, none);
    for (const std::int32_t node : m_nodes) {
        std::int32_t& smallest = m_name[m_parts.part[node]];
        if (smallest == none) smallest = node;
        root[node] = smallest;
    }
}

void Isolation::collect_parts(const std::vector<std::int32_t>& root, const std::vector<std::int32_t>& cycle) {
    m_nodes.clear();
    m_parts.clear();
    for (std::int32_t node = 0; node < m_graph.size(); ++node) {
        const std::int32_t c = cycle[root[node]];
        m_parts.part[node] = none;
        if (c < 0) continue;
        if (root[node] == node) {
            m_parts.add(node, c);
        } else {
            m_parts.part[node] = m_parts.part[root[node]];
            ++m_parts.size[m_parts.part[node]];
        }
        m_nodes.push_back(node);
    }
    for (const std::int32_t node : m_nodes) {
        m_entries[node] = 0;
        for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
            const std::int32_t source = m_graph.input_sources[e];
            if (!m_boundary[e] || m_parts.part[source] == none) continue;
            m_parts.activate(node);
            m_parts.activate(source);
            m_entries[node] += m_parts.part[source] != m_parts.part[node];
        }
    }
}

// Sorts by what does not change: no source that others read too, a leaf as source, a place in a row of nodes,
// the number of inputs to cut, and the node.
void Isolation::rank_candidates() {
    std::int32_t most_inputs = 0;
    for (const std::int32_t node : m_nodes) {
        std::int32_t inner_inputs = 0;
        bool shares_source = false, has_leaf_input = false;
        for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
            if (m_boundary[e]) continue;
            const std::int32_t source = m_graph.input_sources[e];
            ++inner_inputs;
            shares_source = shares_source || m_graph.readers[source] > 1;
            has_leaf_input = has_leaf_input || m_graph.is_leaf[source];
        }
        most_inputs = std::max(most_inputs, inner_inputs);
        const bool is_linear = inner_inputs == 1 && m_graph.readers[node] <= 1;
        m_class[node] = inner_inputs << 3 | !shares_source << 2 | has_leaf_input << 1 | int{is_linear};
    }
    const auto class_of = [&](std::int32_t node) {
        return (m_class[node] & 7) * (most_inputs + 1) + (m_class[node] >> 3);
    };
    m_class_end.assign(8 * (most_inputs + 1) + 1, 0);
    std::int32_t candidates = 0;
    for (const std::int32_t node : m_nodes) {
        m_slot[node] = none;
        if (m_class[node] >> 3 == 0) continue;
        ++candidates;
        ++m_class_end[class_of(node) + 1];
    }
    std::partial_sum(m_class_end.begin(), m_class_end.end(), m_class_end.begin());
    m_candidates.resize(candidates);
    m_entered.assign((candidates + 63) / 64, 0);
    m_next_open = m_first_entered = 0;
    for (const std::int32_t node : m_nodes) {
        if (m_class[node] >> 3 == 0) continue;
        m_slot[node] = m_class_end[class_of(node)]++;
        m_candidates[m_slot[node]] = node;
        enter(node, 0);
    }
}

// Candidates are cut off by rank, those that boundaries enter first. It is not known yet where boundaries
// will enter, but most cuts do follow this order, so most of the edges chosen here hold a part together until
// the very cut that splits it.
void Isolation::span_parts() {
    m_spanning.start(m_nodes.data(), m_nodes.size());
    for (const bool entered : {false, true}) {
        for (std::size_t i = m_candidates.size(); i-- > 0;) {
            if ((m_entered[i / 64] >> (i % 64) & 1) == entered) m_spanning.add_inputs(m_candidates[i]);
        }
    }
}

std::int32_t Isolation::take_best() {
    for (; m_first_entered < m_entered.size(); ++m_first_entered) {
        while (const std::uint64_t word = m_entered[m_first_entered]) {
            std::size_t bit = 0;
            while (!(word >> bit & 1)) ++bit;
            const std::int32_t node = m_candidates[m_first_entered * 64 + bit];
            forget(node);
            if (m_parts.cycle[m_parts.part[node]] != none) return node;
        }
    }
    while (m_next_open < m_candidates.size()) {
        const std::int32_t node = m_candidates[m_next_open++];
        if (m_slot[node] == none) continue;
        forget(node);
        if (m_parts.cycle[m_parts.part[node]] != none) return node;
    }
    return none;
}

void Isolation::forget(std::int32_t node) {
    m_entered[m_slot[node] / 64] &= ~(std::uint64_t{1} << (m_slot[node] % 64));
    m_slot[node] = none;
}

void Isolation::enter(std::int32_t node, std::int32_t change) {
    m_entries[node] += change;
    if (m_slot[node] == none) return;
    const std::size_t word = m_slot[node] / 64;
    const std::uint64_t bit = std::uint64_t{1} << (m_slot[node] % 64);
    m_entered[word] = m_entries[node] > 0 ? m_entered[word] | bit : m_entered[word] & ~bit;
    if (m_entries[node] > 0) m_first_entered = std::min(m_first_entered, word);
}

void Isolation::cut_off(std::int32_t node) {
    m_cuts.clear();
    m_parts.activate(node);
    for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
        if (m_boundary[e]) continue;
        m_cuts.push_back(e);
        m_boundary[e] = !m_spanning.is_chosen(e);  // these change nothing, and the chosen ones come in turn
        m_parts.activate(m_graph.input_sources[e]);
    }
    bool splits = false;
    for (const std::int32_t e : m_cuts) {
        if (m_boundary[e]) continue;
        m_boundary[e] = 1;
        const std::vector<std::int32_t>& nodes = m_spanning.cut(e, node);
        if (nodes.empty()) continue;
        move_out(nodes);
        splits = true;
    }
    if (!splits) return;
    for (const std::int32_t part : m_trees.renew(m_parts.cycle[m_parts.part[node]])) retire(part);
}

// Makes a part of some nodes of another part.
void Isolation::move_out(const std::vector<std::int32_t>& nodes) {
    const std::int32_t from = m_parts.part[nodes[0]], to = m_parts.move_out(nodes);
    m_trees.split(from, to);
    for (const std::int32_t node : nodes) {
        if (!m_parts.active[node]) continue;
        std::int32_t entries = 0;
        for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
            entries += m_parts.part[m_graph.input_sources[e]] == from;
        }
        if (entries > 0) enter(node, entries);
        for (std::int32_t k = m_graph.output_offsets[node]; k < m_graph.output_offsets[node + 1]; ++k) {
            if (m_parts.part[m_graph.output_readers[k]] == from) enter(m_graph.output_readers[k], 1);
        }
    }
}

// For a part that is in no cycle any more.
void Isolation::retire(std::int32_t part) {
    for (std::int32_t node = m_parts.first[part]; node != none; node = m_parts.next[node]) {
        for (std::int32_t k = m_graph.output_offsets[node]; k < m_graph.output_offsets[node + 1]; ++k) {
            const std::int32_t reader = m_graph.output_readers[k];
            if (m_parts.part[reader] != none && m_parts.part[reader] != part) enter(reader, -1);
        }
    }
}

}  // namespace ov_autoplace
