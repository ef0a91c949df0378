#include "ov_autoplace/partition.hpp"

#include <algorithm>

namespace ov_autoplace {
namespace {

// Bits handled per pass over a circle: one word serves almost every circle, four keep the number of passes
// low on the few huge ones without memory that grows with nodes times subgraphs.
constexpr int wide_words = 4;
constexpr std::int32_t bits_per_word = 64;

// Asking whether a placement is hopeless walks over the graph; this rarely, it takes a small part of the
// time.
constexpr std::size_t passes_between_questions = 16;

constexpr std::size_t wide_row(std::int32_t row) { return static_cast<std::size_t>(row) * wide_words; }

}  // namespace

Partitioner::Partitioner(const PartitionGraph& graph)
    : m_graph(graph),
      m_isolation(graph),
      m_root(graph.size()),
      m_boundary(graph.input_sources.size()),
      m_circle(graph.size()),
      m_waits(graph.size()),
      m_out_begin(graph.size()),
      m_out_end(graph.size()),
      m_flag(graph.size()),
      m_order(graph.size()),
      m_low(graph.size()),
      m_next(graph.size()),
      m_component(graph.size()),
      m_bit(graph.size()),
      m_outer_entry(graph.size()),
      m_entry(graph.size()),
      m_fed_back(graph.size()),
      m_entered(graph.size()),
      m_row(graph.size()) {}

std::int32_t Partitioner::partition(const std::int32_t* devices, const std::function<bool()>& hopeless) {
    start(devices);
    bool stuck = false;
    while (!m_work.empty()) {
        const Circle circle = m_work.back();
        m_work.pop_back();
        connect(circle);
        m_found.clear();
        find_circles(circle, true, m_found);
        const std::size_t work =
            circle.nodes_end - circle.nodes_begin + circle.edges_end - circle.edges_begin;
        if (hopeless && !m_found.empty() && is_time_to_ask(work) && hopeless()) return stopped;
        for (const Circle& found : m_found) {
            if (split_feedback(found)) {
                m_work.push_back(found);
            } else if (found.subgraphs > 1) {
                stuck = true;
            } else {
                m_circle[m_root[m_nodes[found.nodes_begin]]] =
                    -1;  // a boundary inside one subgraph is harmless
            }
        }
    }
    if (stuck) {
        m_isolation.start(m_root, m_circle, m_boundary);
        while (m_isolation.cut_next()) {
            if (!hopeless || !is_time_to_ask(m_isolation.take_work())) continue;
            m_isolation.name_parts(m_root);
            if (hopeless()) return stopped;
        }
        m_isolation.name_parts(m_root);
    }
    return count_submodels();
}

bool Partitioner::is_time_to_ask(std::size_t work) {
    if (work < m_work_until_asked) {
        m_work_until_asked -= work;
        return false;
    }
    m_work_until_asked = passes_between_questions * (m_graph.kinds.size() + m_graph.input_sources.size());
    return true;
}

// Rule 1, and the whole graph as the first circle.
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
    std::fill(m_outer_entry.begin(), m_outer_entry.end(), Entry::none);
    m_next_id = 1;
    m_work_until_asked = 0;
    m_work.assign(1, Circle{0, m_nodes.size(), 0, m_edges.size(), 0, 0});
}

// Joins the circle's nodes over the edges that are no boundaries. All such edges stay inside the circle.
void Partitioner::connect(const Circle& circle) {
    const auto find = [&](std::int32_t node) {
        while (m_root[node] != node) node = m_root[node] = m_root[m_root[node]];
        return node;
    };
    for (std::size_t i = circle.nodes_begin; i < circle.nodes_end; ++i) m_root[m_nodes[i]] = m_nodes[i];
    for (std::size_t i = circle.edges_begin; i < circle.edges_end; ++i) {
        const Edge& edge = m_edges[i];
        const std::int32_t a = find(edge.node), b = edge.boundary ? a : find(edge.source);
        m_root[std::max(a, b)] = std::min(a, b);
    }
    m_roots.clear();
    for (std::size_t i = circle.nodes_begin; i < circle.nodes_end; ++i) {
        const std::int32_t node = m_nodes[i];
        m_root[node] = m_root[m_root[node]];  // a parent is smaller, so it points at its root already
        if (m_root[node] == node) {
            m_roots.push_back(node);
            m_circle[node] = circle.id;
        }
    }
}

// Rule 2 on one circle; false when it makes no boundary.
//
// A node is fed back when it depends on a boundary that leaves its own subgraph. Boundaries are wanted where
// the fed-back part of a subgraph begins: on an inner edge from a node that is not fed back to one that is,
// if both sides of the detour share something above them in the subgraph: a boundary that enters, or an
// origin. Spared is a tensor with one reader whose maker depends on nothing but graph inputs, since cutting
// it off would make a tiny subgraph.
bool Partitioner::split_feedback(const Circle& circle) {
    std::int32_t bits = 0, rows = 0;
    for (std::size_t i = circle.nodes_begin; i < circle.nodes_end; ++i) {
        const std::int32_t node = m_nodes[i];
        m_row[node] = rows++;
        if (m_root[node] == node) m_bit[node] = bits++;
    }
    circle.subgraphs <= bits_per_word ? mark_feedback<1>(circle) : mark_feedback<wide_words>(circle);
    mark_entries(circle);

    m_cuts.clear();
    m_candidates.clear();
    for (std::size_t i = circle.edges_begin; i < circle.edges_end; ++i) {
        const Edge& edge = m_edges[i];
        if (edge.boundary | !m_fed_back[edge.node] | m_fed_back[edge.source]) continue;
        const Entry entry = m_entry[edge.source];
        const bool spared = m_graph.input_is_private[edge.index] && !m_graph.is_graph_input(edge.source) &&
                            entry != Entry::from_ops;
        if (spared) continue;
        // What enters above the source also enters above the node, so it is shared.
        (entry == Entry::none ? m_candidates : m_cuts).push_back(i);
    }
    if (!m_candidates.empty()) find_shared_origins(circle);
    // Only now, because all decisions of one round rest on the boundaries at its start.
    for (const std::size_t i : m_cuts) m_edges[i].boundary = m_boundary[m_edges[i].index] = 1;
    return !m_cuts.empty();
}

// m_fed_back: one bit per subgraph travels along the edges, raised where a boundary leaves the subgraph.
template <int Words>
void Partitioner::mark_feedback(const Circle& circle) {
    constexpr std::int32_t bits_per_pass = Words * bits_per_word;
    const std::size_t rows = circle.nodes_end - circle.nodes_begin;
    m_bits.resize(std::max(m_bits.size(), rows * Words));
    // A bit matters from the first to the last node of its subgraph only. Bits ascend with the first node,
    // so in a long graph a pass looks at a short stretch of it. One word serves all of a small circle.
    m_pass_begin.assign((circle.subgraphs + bits_per_pass - 1) / bits_per_pass, rows);
    m_pass_end.assign(m_pass_begin.size(), 0);
    for (std::size_t row = 0; row < rows && Words > 1; ++row) {
        const std::size_t pass = m_bit[m_root[m_nodes[circle.nodes_begin + row]]] / bits_per_pass;
        m_pass_begin[pass] = std::min(m_pass_begin[pass], row);
        m_pass_end[pass] = row + 1;
    }
    if (Words == 1) {
        m_pass_begin[0] = 0;
        m_pass_end[0] = rows;
    }
    for (std::size_t pass = 0; pass < m_pass_begin.size(); ++pass) {
        const auto first = static_cast<std::int32_t>(pass) * bits_per_pass;
        const auto first_row = static_cast<std::int32_t>(m_pass_begin[pass]);
        const std::int32_t last_node = m_nodes[circle.nodes_begin + m_pass_end[pass] - 1];
        const auto edges_begin =
            std::lower_bound(m_edges.begin() + static_cast<std::ptrdiff_t>(circle.edges_begin),
                             m_edges.begin() + static_cast<std::ptrdiff_t>(circle.edges_end),
                             m_nodes[circle.nodes_begin + m_pass_begin[pass]],
                             [](const Edge& edge, std::int32_t node) { return edge.node < node; });
        std::fill(m_bits.begin() + static_cast<std::ptrdiff_t>(m_pass_begin[pass] * Words),
                  m_bits.begin() + static_cast<std::ptrdiff_t>(m_pass_end[pass] * Words), 0);
        for (auto i = static_cast<std::size_t>(edges_begin - m_edges.begin()); i < circle.edges_end; ++i) {
            const Edge& edge = m_edges[i];
            if (edge.node > last_node) break;
            if (Words > 1 && m_row[edge.source] < first_row) continue;
            const std::uint64_t* above = &m_bits[static_cast<std::size_t>(m_row[edge.source]) * Words];
            std::uint64_t* row = &m_bits[static_cast<std::size_t>(m_row[edge.node]) * Words];
            for (int w = 0; w < Words; ++w) row[w] |= above[w];
            const std::int32_t bit = m_bit[m_root[edge.source]] - first;
            if (Words == 1) {
                row[0] |= static_cast<std::uint64_t>(edge.boundary) << bit;
            } else if (edge.boundary && bit >= 0 && bit < bits_per_pass) {
                row[bit / bits_per_word] |= std::uint64_t{1} << (bit % bits_per_word);
            }
        }
        for (std::size_t r = m_pass_begin[pass]; r < m_pass_end[pass]; ++r) {
            const std::int32_t node = m_nodes[circle.nodes_begin + r], own = m_bit[m_root[node]] - first;
            if (own < 0 || own >= bits_per_pass) continue;
            m_fed_back[node] = m_bits[r * Words + own / bits_per_word] >> (own % bits_per_word) & 1;
        }
    }
}

// m_entry, exact for the nodes that are not fed back: everything of their subgraph that is above them
// reaches them without leaving the subgraph.
void Partitioner::mark_entries(const Circle& circle) {
    for (std::size_t i = circle.nodes_begin; i < circle.nodes_end; ++i) {
        const std::int32_t node = m_nodes[i];
        m_entry[node] = m_outer_entry[node];
        m_entered[node] = m_outer_entry[node] != Entry::none;
    }
    for (std::size_t i = circle.edges_begin; i < circle.edges_end; ++i) {
        const Edge& edge = m_edges[i];
        const bool enters = m_root[edge.source] != m_root[edge.node];
        const Entry inner = edge.boundary ? Entry::none : m_entry[edge.source];
        const Entry entry = enters ? entry_from(edge.source) : inner;
        m_entry[edge.node] = std::max(m_entry[edge.node], entry);
        m_entered[edge.node] |= enters;
    }
}

// Decides the candidates, edges with no entry above their source: cut where an origin above the source
// reaches the edge's end also by a detour, that is through a boundary or a node at which one enters.
void Partitioner::find_shared_origins(const Circle& circle) {
    for (std::size_t i = circle.nodes_begin; i < circle.nodes_end; ++i) m_flag[m_root[m_nodes[i]]] = 0;
    for (const std::size_t i : m_candidates) m_flag[m_root[m_edges[i].node]] = 1;
    std::int32_t origins = 0;
    for (std::size_t i = circle.nodes_begin; i < circle.nodes_end; ++i) {
        const std::int32_t node = m_nodes[i];
        m_bit[node] = m_graph.is_origin[node] && m_flag[m_root[node]] ? origins++ : -1;
    }
    for (std::int32_t first = 0; first < origins; first += wide_words * bits_per_word) {
        propagate_origins(circle, first);
        for (const std::size_t i : m_candidates) {
            const std::size_t above = wide_row(m_row[m_edges[i].source]),
                              end = wide_row(m_row[m_edges[i].node]);
            const std::uint64_t* detour = m_entered[m_edges[i].node] ? &m_bits[end] : &m_marked_bits[end];
            bool shared = false;
            for (int w = 0; w < wide_words; ++w) shared |= (m_bits[above + w] & detour[w]) != 0;
            if (shared) m_cuts.push_back(i);
        }
    }
}

// m_bits: the origins above each node; m_marked_bits: those that reach it by a detour. The marked bits of a
// node at which a boundary enters are all its bits.
void Partitioner::propagate_origins(const Circle& circle, std::int32_t first_bit) {
    const std::size_t size = wide_row(static_cast<std::int32_t>(circle.nodes_end - circle.nodes_begin));
    m_bits.resize(std::max(m_bits.size(), size));
    m_marked_bits.resize(std::max(m_marked_bits.size(), size));
    std::fill_n(m_bits.begin(), size, 0);
    std::fill_n(m_marked_bits.begin(), size, 0);
    for (std::size_t i = circle.nodes_begin; i < circle.nodes_end; ++i) {
        const std::int32_t bit = m_bit[m_nodes[i]] - first_bit;
        if (m_bit[m_nodes[i]] < 0 || bit < 0 || bit >= wide_words * bits_per_word) continue;
        m_bits[wide_row(m_row[m_nodes[i]]) + bit / bits_per_word] |= std::uint64_t{1}
                                                                     << (bit % bits_per_word);
    }
    for (std::size_t i = circle.edges_begin; i < circle.edges_end; ++i) {
        const Edge& edge = m_edges[i];
        const std::size_t above = wide_row(m_row[edge.source]), row = wide_row(m_row[edge.node]);
        const bool all = edge.boundary || m_entered[edge.source];
        for (int w = 0; w < wide_words; ++w) {
            m_bits[row + w] |= m_bits[above + w];
            m_marked_bits[row + w] |= all ? m_bits[above + w] : m_marked_bits[above + w];
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
