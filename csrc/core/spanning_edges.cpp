#include "ov_autoplace/spanning_edges.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace ov_autoplace {
namespace {

constexpr std::int32_t none = -1;
constexpr int length_classes = 32;

// Floor of the binary logarithm.
int length_class(std::int32_t length) {
    int result = 0;
    while (length >>= 1) ++result;
    return result;
}

}  // namespace

SpanningEdges::SpanningEdges(const PartitionGraph& graph, const std::vector<std::uint8_t>& boundary)
    : m_graph(graph),
      m_boundary(boundary),
      m_is_chosen(graph.input_sources.size()),
      m_mark{std::vector<std::int32_t>(graph.size()), std::vector<std::int32_t>(graph.size())},
      m_edge_to(graph.size()),
      m_from(graph.size()),
      m_parent(graph.size()) {}

void SpanningEdges::span(const std::int32_t* nodes, std::size_t count) {
    start(nodes, count);
    std::array<std::size_t, length_classes + 1> end{};
    const auto for_each_edge = [&](auto use) {
        for (std::size_t i = 0; i < count; ++i) {
            const std::int32_t node = nodes[i];
            for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
                if (!m_boundary[e]) use(e, node, length_class(node - m_graph.input_sources[e]));
            }
        }
    };
    for_each_edge([&](std::int32_t, std::int32_t, int length) { ++end[length + 1]; });
    for (int c = 0; c < length_classes; ++c) end[c + 1] += end[c];
    m_sorted.resize(end[length_classes]);
    for_each_edge(
        [&](std::int32_t e, std::int32_t node, int length) { m_sorted[end[length]++] = {e, node}; });
    for (const auto& [e, node] : m_sorted) join(e, node);
}

void SpanningEdges::start(const std::int32_t* nodes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        const std::int32_t node = nodes[i];
        for (std::int32_t k = m_graph.output_offsets[node]; k < m_graph.output_offsets[node + 1]; ++k) {
            m_is_chosen[m_graph.output_edges[k]] = 0;
        }
        for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
            m_is_chosen[e] = 0;
        }
        m_parent[node] = node;
    }
}

void SpanningEdges::add_inputs(std::int32_t node) {
    for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
        if (!m_boundary[e]) join(e, node);
    }
}

// Chooses an edge if nothing chosen so far connects its ends.
void SpanningEdges::join(std::int32_t edge, std::int32_t node) {
    const auto find = [&](std::int32_t at) {
        while (m_parent[at] != at) at = m_parent[at] = m_parent[m_parent[at]];
        return at;
    };
    const std::int32_t a = find(node), b = find(m_graph.input_sources[edge]);
    m_is_chosen[edge] = a != b;
    m_parent[std::max(a, b)] = std::min(a, b);
}

const std::vector<std::int32_t>& SpanningEdges::cut(std::int32_t edge, std::int32_t node) {
    if (!m_is_chosen[edge]) return m_nothing;
    m_is_chosen[edge] = 0;
    if (m_last_mark > std::numeric_limits<std::int32_t>::max() - 4) {
        for (std::vector<std::int32_t>& mark : m_mark) std::fill(mark.begin(), mark.end(), 0);
        m_last_mark = 0;
    }
    for (int s = 0; s < 4; ++s) {
        m_sides[s].over_all = s >= 2;
        begin(m_sides[s], s % 2 == 0 ? node : m_graph.input_sources[edge]);
    }
    for (int s = 0;; s = (s + 1) % 4) {
        const Step step_made = step(m_sides[s], m_sides[s ^ 1].mark);
        if (step_made == Step::met) return m_nothing;
        if (step_made == Step::ended) return rejoin(m_sides[s]) ? m_nothing : m_sides[s].nodes;
    }
}

void SpanningEdges::begin(Side& side, std::int32_t node) {
    side.nodes.assign(1, node);
    side.mark = m_mark[side.over_all][node] = ++m_last_mark;
    side.next = 0;
    side.input = side.inputs_end = side.output = side.outputs_end = 0;
    if (side.over_all) m_from[node] = none;
}

// Looks at one more edge of what a search has found.
SpanningEdges::Step SpanningEdges::step(Side& side, std::int32_t other_mark) {
    while (side.input == side.inputs_end && side.output == side.outputs_end) {
        if (side.next == side.nodes.size()) return Step::ended;
        const std::int32_t node = side.nodes[side.next++];
        side.input = m_graph.input_offsets[node];
        side.inputs_end = m_graph.input_offsets[node + 1];
        side.output = m_graph.output_offsets[node];
        side.outputs_end = m_graph.output_offsets[node + 1];
    }
    ++m_work;
    const bool is_input = side.input < side.inputs_end;
    const std::int32_t at = is_input ? side.input++ : side.output++;
    const std::int32_t edge = is_input ? at : m_graph.output_edges[at];
    if (side.over_all ? m_boundary[edge] != 0 : !m_is_chosen[edge]) return Step::onward;
    const std::int32_t other = is_input ? m_graph.input_sources[at] : m_graph.output_readers[at];
    std::int32_t& mark = m_mark[side.over_all][other];
    if (mark == side.mark) return Step::onward;
    const std::int32_t node = side.nodes[side.next - 1];
    if (mark == other_mark) {
        if (!side.over_all) return Step::met;
        m_is_chosen[edge] = 1;
        choose_way(node);
        choose_way(other);
        return Step::met;
    }
    mark = side.mark;
    side.nodes.push_back(other);
    if (side.over_all) {
        m_edge_to[other] = edge;
        m_from[other] = node;
    }
    return Step::onward;
}

// Chooses the edges by which a search over all edges has come to a node.
void SpanningEdges::choose_way(std::int32_t node) {
    for (; m_from[node] != none; node = m_from[node]) m_is_chosen[m_edge_to[node]] = 1;
}

// Chooses one of the edges that leave what a search has found and are no boundaries; false if there is none.
bool SpanningEdges::rejoin(const Side& side) {
    for (const std::int32_t node : side.nodes) {
        for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
            if (m_boundary[e] || m_mark[side.over_all][m_graph.input_sources[e]] == side.mark) continue;
            m_is_chosen[e] = 1;
            return true;
        }
        for (std::int32_t k = m_graph.output_offsets[node]; k < m_graph.output_offsets[node + 1]; ++k) {
            const std::int32_t e = m_graph.output_edges[k];
            if (m_boundary[e] || m_mark[side.over_all][m_graph.output_readers[k]] == side.mark) continue;
            m_is_chosen[e] = 1;
            return true;
        }
    }
    return false;
}

}  // namespace ov_autoplace
