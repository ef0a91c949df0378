// The Partitioner's search for cycles: subgraphs that wait for each other.
#include <algorithm>

#include "ov_autoplace/partition.hpp"

namespace ov_autoplace {

// Appends the cycles among the subgraphs of a connected list of nodes; with_loops also the single subgraphs
// that have a boundary inside.
void Partitioner::find_cycles(const Cycle& within, bool with_loops, std::vector<Cycle>& found) {
    const bool all_peeled = peel(within);
    if (!all_peeled) find_strong_components();
    keep_cycles(within, with_loops, found);
}

// Takes subgraphs away that wait for none of the others, again and again; true when none is left.
bool Partitioner::peel(const Cycle& within) {
    for (const std::int32_t root : m_roots) {
        m_waits[root] = m_out_end[root] = 0;
        m_flag[root] = 0;
        m_component[root] = -1;
    }
    m_crossings.resize(std::max(m_crossings.size(), within.edges_end - within.edges_begin));
    std::size_t crossings = 0;
    for (std::size_t i = within.edges_begin; i < within.edges_end; ++i) {
        const std::int32_t from = m_root[m_edges[i].source], to = m_root[m_edges[i].node];
        m_crossings[crossings] = {from, to};
        crossings += from != to;
        m_flag[to] |= m_edges[i].boundary & (from == to);
    }
    for (std::size_t i = 0; i < crossings; ++i) {
        ++m_out_end[m_crossings[i].first];
        ++m_waits[m_crossings[i].second];
    }
    std::int32_t begin = 0;
    for (const std::int32_t root : m_roots) {
        m_out_begin[root] = begin;
        begin += m_out_end[root];
        m_out_end[root] = m_out_begin[root];
    }
    m_out_target.resize(std::max(m_out_target.size(), crossings));
    for (std::size_t i = 0; i < crossings; ++i)
        m_out_target[m_out_end[m_crossings[i].first]++] = m_crossings[i].second;

    m_queue.clear();
    for (const std::int32_t root : m_roots) {
        if (m_waits[root] == 0) m_queue.push_back(root);
    }
    for (std::size_t i = 0; i < m_queue.size(); ++i) {
        for (std::int32_t k = m_out_begin[m_queue[i]]; k < m_out_end[m_queue[i]]; ++k) {
            if (--m_waits[m_out_target[k]] == 0) m_queue.push_back(m_out_target[k]);
        }
    }
    m_component_size.clear();
    return m_queue.size() == m_roots.size();
}

// Tarjan's algorithm over the subgraphs that peel() left: fills m_component and m_component_size.
void Partitioner::find_strong_components() {
    for (const std::int32_t root : m_roots) m_order[root] = -1;
    std::int32_t visited = 0;
    for (const std::int32_t start : m_roots) {
        if (m_waits[start] == 0 || m_order[start] >= 0) continue;
        m_path.assign(1, start);
        while (!m_path.empty()) {
            const std::int32_t root = m_path.back();
            if (m_order[root] < 0) {
                m_order[root] = m_low[root] = visited++;
                m_next[root] = m_out_begin[root];
                m_open.push_back(root);
            }
            if (m_next[root] < m_out_end[root]) {
                const std::int32_t next = m_out_target[m_next[root]++];
                if (m_order[next] < 0) {
                    m_path.push_back(next);
                } else if (m_component[next] < 0) {
                    m_low[root] = std::min(m_low[root], m_order[next]);
                }
                continue;
            }
            m_path.pop_back();
            if (!m_path.empty()) m_low[m_path.back()] = std::min(m_low[m_path.back()], m_low[root]);
            if (m_low[root] != m_order[root]) continue;
            const auto component = static_cast<std::int32_t>(m_component_size.size());
            std::int32_t size = 0, member = -1;
            do {
                member = m_open.back();
                m_open.pop_back();
                m_component[member] = component;
                ++size;
            } while (member != root);
            m_component_size.push_back(size);
        }
    }
}

void Partitioner::keep_cycles(const Cycle& within, bool with_loops, std::vector<Cycle>& found) {
    const std::size_t first = found.size();
    std::vector<std::int32_t>& id_of_component = m_queue;
    id_of_component.assign(m_component_size.size(), -1);
    for (const std::int32_t root : m_roots) {
        const std::int32_t component = m_component[root];
        const std::int32_t subgraphs = component < 0 ? 1 : m_component_size[component];
        if (subgraphs == 1 && !(with_loops && m_flag[root])) {
            m_cycle[root] = -1;
        } else if (component >= 0 && id_of_component[component] >= 0) {
            m_cycle[root] = id_of_component[component];
        } else {
            m_cycle[root] = m_next_id++;
            if (component >= 0) id_of_component[component] = m_cycle[root];
            found.push_back(Cycle{0, 0, 0, 0, m_cycle[root], subgraphs, within.rounds});
        }
    }
    if (found.size() > first) copy_cycles(within, &found[first], found.size() - first);
}

// Gives cycles with ascending ids their nodes and edges.
void Partitioner::copy_cycles(const Cycle& within, Cycle* cycles, std::size_t count) {
    const std::int32_t first_id = cycles[0].id;
    for (std::size_t i = within.nodes_begin; i < within.nodes_end; ++i) {
        const std::int32_t id = m_cycle_of[m_nodes[i]] = m_cycle[m_root[m_nodes[i]]];
        if (id >= 0) ++cycles[id - first_id].nodes_end;
    }
    for (std::size_t i = within.edges_begin; i < within.edges_end; ++i) {
        const Edge edge = m_edges[i];
        const std::int32_t id = m_cycle_of[edge.node];
        if (id >= 0 && m_cycle_of[edge.source] == id) ++cycles[id - first_id].edges_end;
    }
    std::size_t nodes = m_nodes.size(), edges = m_edges.size();
    for (std::size_t c = 0; c < count; ++c) {
        cycles[c].nodes_begin = nodes;
        nodes += cycles[c].nodes_end;
        cycles[c].nodes_end = cycles[c].nodes_begin;
        cycles[c].edges_begin = edges;
        edges += cycles[c].edges_end;
        cycles[c].edges_end = cycles[c].edges_begin;
    }
    m_nodes.resize(nodes);
    m_edges.resize(edges);
    for (std::size_t i = within.nodes_begin; i < within.nodes_end; ++i) {
        const std::int32_t id = m_cycle_of[m_nodes[i]];
        if (id >= 0) m_nodes[cycles[id - first_id].nodes_end++] = m_nodes[i];
    }
    for (std::size_t i = within.edges_begin; i < within.edges_end; ++i) {
        const Edge edge = m_edges[i];
        const std::int32_t id = m_cycle_of[edge.node];
        if (id >= 0 && m_cycle_of[edge.source] == id) m_edges[cycles[id - first_id].edges_end++] = edge;
    }
}

}  // namespace ov_autoplace
