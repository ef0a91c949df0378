#include "ov_autoplace/partition.hpp"

#include <algorithm>

namespace ov_autoplace {
namespace {

// Asking whether a placement is hopeless walks over the graph; this rarely, it takes a small part of the
// time.
constexpr std::size_t passes_between_questions = 16;

// So many rounds of rule 2 look at all that is in a cycle: most cycles end sooner, for less than it takes
// to prepare looking only at what a round changed.
constexpr std::int32_t rounds_of_all = 8;

}  // namespace

Partitioner::Partitioner(const PartitionGraph& graph)
    : m_graph(graph),
      m_root(graph.size()),
      m_boundary(graph.input_sources.size()),
      m_spanning(graph, m_boundary),
      m_feedback(graph, m_boundary, m_spanning),
      m_isolation(graph, m_boundary, m_spanning),
      m_cycle(graph.size()),
      m_waits(graph.size()),
      m_out_begin(graph.size()),
      m_out_end(graph.size()),
      m_flag(graph.size()),
      m_order(graph.size()),
      m_low(graph.size()),
      m_next(graph.size()),
      m_component(graph.size()),
      m_cycle_of(graph.size()) {}

std::int32_t Partitioner::partition(const std::int32_t* devices, const std::function<bool()>& hopeless) {
    start(devices);
    m_cycles.assign(1, Cycle{0, m_nodes.size(), 0, m_edges.size(), 0, 0, 0});
    m_stuck.clear();
    while (!m_cycles.empty()) {
        const Cycle within = m_cycles.back();
        m_cycles.pop_back();
        connect(within);
        m_found.clear();
        find_cycles(within, true, m_found);
        const std::size_t work =
            within.nodes_end - within.nodes_begin + within.edges_end - within.edges_begin;
        if (hopeless && !m_found.empty() && is_time_to_ask(work) && hopeless()) return stopped;
        for (Cycle& cycle : m_found) {
            if (cycle.rounds == rounds_of_all && m_graph.rules == HeteroRules::isolating) {
                if (!split_to_the_end(cycle, hopeless)) return stopped;
                find_cycles(cycle, false, m_stuck);
            } else if (split_once(cycle)) {
                ++cycle.rounds;
                m_cycles.push_back(cycle);
            } else if (cycle.subgraphs > 1) {
                m_stuck.push_back(cycle);
            } else {
                m_cycle[m_root[m_nodes[cycle.nodes_begin]]] = -1;  // a boundary inside one is harmless
            }
        }
    }
    if (m_graph.rules == HeteroRules::refusing) {
        const auto sortable = [&](const Cycle& cycle) { return is_sortable(cycle); };
        if (!std::all_of(m_stuck.begin(), m_stuck.end(), sortable)) return refused;
    } else if (!m_stuck.empty() && !isolate(hopeless)) {
        return stopped;
    }
    return count_submodels();
}

// One round of rule 2 on one cycle; false when it makes no boundary.
bool Partitioner::split_once(const Cycle& cycle) {
    const std::size_t count = cycle.nodes_end - cycle.nodes_begin;
    if (!m_feedback.split_once(&m_nodes[cycle.nodes_begin], count, m_root)) return false;
    for (std::size_t i = cycle.edges_begin; i < cycle.edges_end; ++i) {
        m_edges[i].boundary = m_boundary[m_edges[i].index];
    }
    return true;
}

// All rounds of rule 2 on one cycle, and its subgraphs named; false when the placement is hopeless.
bool Partitioner::split_to_the_end(const Cycle& cycle, const std::function<bool()>& hopeless) {
    const auto is_hopeless = [&](std::size_t work) {
        if (!is_time_to_ask(work)) return false;
        name_subgraphs(cycle);
        return hopeless();
    };
    const std::int32_t* nodes = &m_nodes[cycle.nodes_begin];
    const std::size_t count = cycle.nodes_end - cycle.nodes_begin;
    m_spanning.span(nodes, count);
    if (!m_feedback.split(nodes, count, m_root,
                          hopeless ? std::function<bool(std::size_t)>(is_hopeless) : nullptr)) {
        return false;
    }
    name_subgraphs(cycle);
    return true;
}

void Partitioner::name_subgraphs(const Cycle& cycle) {
    for (std::size_t i = cycle.edges_begin; i < cycle.edges_end; ++i) {
        m_edges[i].boundary = m_boundary[m_edges[i].index];
    }
    connect(cycle);
}

// Rule 3; false when the placement is hopeless.
bool Partitioner::isolate(const std::function<bool()>& hopeless) {
    m_isolation.start(m_root, m_cycle);
    while (m_isolation.cut_next()) {
        if (!hopeless || !is_time_to_ask(m_isolation.take_work())) continue;
        m_isolation.name_parts(m_root);
        if (hopeless()) return false;
    }
    m_isolation.name_parts(m_root);
    return true;
}

// Whether subgraphs that wait for each other do not where nobody waits for a constant.
bool Partitioner::is_sortable(const Cycle& cycle) {
    m_roots.clear();
    for (std::size_t i = cycle.nodes_begin; i < cycle.nodes_end; ++i) {
        if (m_root[m_nodes[i]] == m_nodes[i]) m_roots.push_back(m_nodes[i]);
    }
    Cycle moving = cycle;
    moving.edges_begin = m_edges.size();
    for (std::size_t i = cycle.edges_begin; i < cycle.edges_end; ++i) {
        const Edge edge = m_edges[i];
        if (m_graph.kinds[edge.source] != NodeKind::constant) m_edges.push_back(edge);
    }
    moving.edges_end = m_edges.size();
    return peel(moving);
}

bool Partitioner::is_time_to_ask(std::size_t work) {
    if (work < m_work_until_asked) {
        m_work_until_asked -= work;
        return false;
    }
    m_work_until_asked = passes_between_questions * (m_graph.kinds.size() + m_graph.input_sources.size());
    return true;
}

// Rule 1, and the whole graph as the first cycle.
void Partitioner::start(const std::int32_t* devices) {
    m_nodes.resize(m_graph.size());
    m_edges.resize(m_graph.input_sources.size());
    for (std::int32_t node = 0; node < m_graph.size(); ++node) {
        m_nodes[node] = node;
        const bool follows = m_graph.kinds[node] == NodeKind::result;
        for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
            const std::int32_t source = m_graph.input_sources[e];
            m_boundary[e] = !follows && devices[source] != devices[node];
            m_edges[e] = Edge{source, node, e, m_boundary[e]};
        }
    }
    m_next_id = 0;
    m_work_until_asked = 0;
}

// Joins the cycle's nodes over the edges that are no boundaries. All such edges stay inside the cycle.
void Partitioner::connect(const Cycle& cycle) {
    const auto find = [&](std::int32_t node) {
        while (m_root[node] != node) node = m_root[node] = m_root[m_root[node]];
        return node;
    };
    for (std::size_t i = cycle.nodes_begin; i < cycle.nodes_end; ++i) m_root[m_nodes[i]] = m_nodes[i];
    for (std::size_t i = cycle.edges_begin; i < cycle.edges_end; ++i) {
        const Edge& edge = m_edges[i];
        const std::int32_t a = find(edge.node), b = edge.boundary ? a : find(edge.source);
        m_root[std::max(a, b)] = std::min(a, b);
    }
    m_roots.clear();
    for (std::size_t i = cycle.nodes_begin; i < cycle.nodes_end; ++i) {
        const std::int32_t node = m_nodes[i];
        m_root[node] = m_root[m_root[node]];  // a parent is smaller, so it points at its root already
        if (m_root[node] == node) {
            m_roots.push_back(node);
            m_cycle[node] = cycle.id;
        }
    }
}

std::int32_t Partitioner::count_submodels() {
    std::fill(m_flag.begin(), m_flag.end(), std::uint8_t{0});
    std::int32_t count = 0;
    for (std::int32_t node = 0; node < m_graph.size(); ++node) {
        if (m_graph.kinds[node] == NodeKind::constant) continue;
        count += !m_flag[m_root[node]];
        m_flag[m_root[node]] = 1;
    }
    return count;
}

}  // namespace ov_autoplace
