#include "ov_autoplace/partition.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

namespace ov_autoplace {
namespace {

// Bits handled per pass over a circle: one word serves almost every circle, four keep the number of passes
// low on the few huge ones without memory that grows with nodes times subgraphs.
constexpr int wide_words = 4;
constexpr std::int32_t bits_per_word = 64;

constexpr std::size_t wide_row(std::int32_t row) { return static_cast<std::size_t>(row) * wide_words; }

}  // namespace

Partitioner::Partitioner(const PartitionGraph& graph)
    : m_graph(graph),
      m_boundary(graph.input_sources.size()),
      m_root(graph.size()),
      m_circle(graph.size()),
      m_waits(graph.size()),
      m_out_begin(graph.size()),
      m_out_end(graph.size()),
      m_bit(graph.size()),
      m_flag(graph.size()),
      m_order(graph.size()),
      m_low(graph.size()),
      m_group(graph.size()),
      m_out_target(graph.input_sources.size()),
      m_row(graph.size()),
      m_fed_back(graph.size()),
      m_entry(graph.size()) {}

std::int32_t Partitioner::partition(const std::int32_t* devices) {
    const std::int32_t n = m_graph.size();
    for (std::int32_t node = 0; node < n; ++node) {
        const bool follows = m_graph.kinds[node] == NodeKind::result;
        for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
            m_boundary[e] = !follows && devices[m_graph.input_sources[e]] != devices[node];
        }
    }
    m_arena.resize(n);
    std::iota(m_arena.begin(), m_arena.end(), 0);
    m_next_id = 1;
    m_stuck.clear();
    m_work.assign(1, Circle{0, m_arena.size(), 0, 0});
    while (!m_work.empty()) {
        const Circle circle = m_work.back();
        m_work.pop_back();
        connect(circle);
        m_found.clear();
        find_circles(circle, true, m_found);
        for (const Circle& found : m_found) {
            if (split_feedback(found)) {
                m_work.push_back(found);
            } else if (found.subgraphs > 1) {
                m_stuck.push_back(found);
            } else {
                m_circle[m_root[m_arena[found.begin]]] = -1;  // a boundary inside one subgraph harms nobody
            }
        }
    }
    if (!m_stuck.empty()) isolate_nodes(m_stuck);
    return count_submodels();
}

// Joins the circle's nodes over the edges that are no boundaries. All such edges stay inside the circle.
void Partitioner::connect(const Circle& circle) {
    const auto find = [&](std::int32_t node) {
        while (m_root[node] != node) node = m_root[node] = m_root[m_root[node]];
        return node;
    };
    for (std::size_t i = circle.begin; i < circle.end; ++i) {
        const std::int32_t node = m_arena[i];
        std::int32_t root = m_root[node] = node;
        for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
            if (m_boundary[e]) continue;
            const std::int32_t other = find(m_graph.input_sources[e]);
            m_root[std::max(root, other)] = std::min(root, other);
            root = std::min(root, other);
        }
    }
    m_roots.clear();
    for (std::size_t i = circle.begin; i < circle.end; ++i) {
        const std::int32_t node = m_arena[i];
        m_root[node] = m_root[m_root[node]];  // a parent is smaller, so it points at its root already
        if (m_root[node] == node) {
            m_roots.push_back(node);
            m_circle[node] = circle.id;
        }
    }
}

// Appends the circles among the subgraphs of a connected list of nodes; with_loops also the single subgraphs
// that have a boundary inside.
void Partitioner::find_circles(const Circle& within, bool with_loops, std::vector<Circle>& found) {
    const bool all_peeled = peel(within);
    if (!all_peeled) find_strong_components();
    keep_circles(within, with_loops, found);
}

// Takes subgraphs away that wait for none of the others, again and again; true when none is left.
bool Partitioner::peel(const Circle& within) {
    for (const std::int32_t root : m_roots) {
        m_waits[root] = m_out_end[root] = 0;
        m_flag[root] = 0;
        m_group[root] = -1;
    }
    const auto for_each_boundary = [&](const auto& visit) {
        for (std::size_t i = within.begin; i < within.end; ++i) {
            const std::int32_t node = m_arena[i];
            for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
                if (!m_boundary[e]) continue;
                const std::int32_t from = m_root[m_graph.input_sources[e]];
                if (m_circle[from] == within.id) visit(from, m_root[node]);
            }
        }
    };
    for_each_boundary([&](std::int32_t from, std::int32_t to) {
        if (from == to) {
            m_flag[to] = 1;
        } else {
            ++m_out_end[from];
            ++m_waits[to];
        }
    });
    std::int32_t begin = 0;
    for (const std::int32_t root : m_roots) {
        m_out_begin[root] = begin;
        begin += m_out_end[root];
        m_out_end[root] = m_out_begin[root];
    }
    for_each_boundary([&](std::int32_t from, std::int32_t to) {
        if (from != to) m_out_target[m_out_end[from]++] = to;
    });
    m_queue.clear();
    for (const std::int32_t root : m_roots) {
        if (m_waits[root] == 0) m_queue.push_back(root);
    }
    for (std::size_t i = 0; i < m_queue.size(); ++i) {
        for (std::int32_t k = m_out_begin[m_queue[i]]; k < m_out_end[m_queue[i]]; ++k) {
            if (--m_waits[m_out_target[k]] == 0) m_queue.push_back(m_out_target[k]);
        }
    }
    m_group_size.clear();
    return m_queue.size() == m_roots.size();
}

// Tarjan's algorithm over the subgraphs that peel() left: fills m_group and m_group_size.
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
                m_bit[root] = m_out_begin[root];
                m_open.push_back(root);
            }
            if (m_bit[root] < m_out_end[root]) {
                const std::int32_t next = m_out_target[m_bit[root]++];
                if (m_order[next] < 0) {
                    m_path.push_back(next);
                } else if (m_group[next] < 0) {
                    m_low[root] = std::min(m_low[root], m_order[next]);
                }
                continue;
            }
            m_path.pop_back();
            if (!m_path.empty()) m_low[m_path.back()] = std::min(m_low[m_path.back()], m_low[root]);
            if (m_low[root] != m_order[root]) continue;
            const auto group = static_cast<std::int32_t>(m_group_size.size());
            std::int32_t size = 0, member = -1;
            do {
                member = m_open.back();
                m_open.pop_back();
                m_group[member] = group;
                ++size;
            } while (member != root);
            m_group_size.push_back(size);
        }
    }
}

void Partitioner::keep_circles(const Circle& within, bool with_loops, std::vector<Circle>& found) {
    const std::size_t first = found.size();
    // The circle of a strong component gets its number when its first subgraph is met: ascending nodes.
    std::vector<std::int32_t>& number_of_group = m_queue;
    number_of_group.assign(m_group_size.size(), -1);
    bool any = false;
    for (const std::int32_t root : m_roots) {
        m_circle[root] = -1;
        const std::int32_t group = m_group[root];
        const std::int32_t subgraphs = group < 0 ? 1 : m_group_size[group];
        if (subgraphs == 1 && !(with_loops && m_flag[root])) continue;
        any = true;
        if (group >= 0 && number_of_group[group] >= 0) {
            m_circle[root] = number_of_group[group];
            continue;
        }
        m_circle[root] = m_next_id++;
        if (group >= 0) number_of_group[group] = m_circle[root];
        found.push_back(Circle{0, 0, m_circle[root], subgraphs});
    }
    if (!any) return;
    const std::int32_t first_id = found[first].id;
    for (std::size_t i = within.begin; i < within.end; ++i) {
        const std::int32_t circle = m_circle[m_root[m_arena[i]]];
        if (circle >= 0) ++found[first + circle - first_id].end;
    }
    std::size_t begin = m_arena.size();
    for (std::size_t c = first; c < found.size(); ++c) {
        found[c].begin = begin;
        begin += found[c].end;
        found[c].end = found[c].begin;
    }
    m_arena.resize(begin);
    for (std::size_t i = within.begin; i < within.end; ++i) {
        const std::int32_t circle = m_circle[m_root[m_arena[i]]];
        if (circle >= 0) m_arena[found[first + circle - first_id].end++] = m_arena[i];
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
    std::int32_t bits = 0;
    for (std::size_t i = circle.begin; i < circle.end; ++i) {
        const std::int32_t node = m_arena[i];
        if (m_root[node] == node) m_bit[node] = bits++;
    }
    circle.subgraphs <= bits_per_word ? mark_feedback<1>(circle) : mark_feedback<wide_words>(circle);
    mark_entries(circle);

    // The decisions of one round all rest on the boundaries at its start.
    m_cuts.clear();
    m_candidates.clear();
    for (std::size_t i = circle.begin; i < circle.end; ++i) {
        const std::int32_t node = m_arena[i];
        if (!m_fed_back[node]) continue;
        for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
            const std::int32_t source = m_graph.input_sources[e];
            if (m_boundary[e] || m_fed_back[source]) continue;
            const bool spared = m_graph.input_is_private[e] && !m_graph.is_graph_input(source) &&
                                m_entry[source] != Entry::from_ops;
            if (spared) continue;
            if (m_entry[source] == Entry::none) {
                m_candidates.push_back({e, node});
            } else {
                // What enters above `source` also enters above `node`: shared.
                m_cuts.push_back(e);
            }
        }
    }
    if (!m_candidates.empty()) find_shared_origins(circle);
    for (const std::int32_t e : m_cuts) m_boundary[e] = 1;
    return !m_cuts.empty();
}

// m_fed_back: one bit per subgraph travels along the edges, raised where a boundary leaves the subgraph.
template <int Words>
void Partitioner::mark_feedback(const Circle& circle) {
    using Row = std::array<std::uint64_t, Words>;
    const std::size_t nodes = circle.end - circle.begin;
    if (m_bits.size() < nodes * Words) m_bits.resize(nodes * Words);
    const auto row_of = [&](std::int32_t row) { return &m_bits[static_cast<std::size_t>(row) * Words]; };
    for (std::size_t i = 0; i < nodes; ++i) m_row[m_arena[circle.begin + i]] = static_cast<std::int32_t>(i);

    for (std::int32_t first = 0; first < circle.subgraphs; first += Words * bits_per_word) {
        for (std::size_t i = 0; i < nodes; ++i) {
            const std::int32_t node = m_arena[circle.begin + i];
            Row row{};
            for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
                const std::int32_t source = m_graph.input_sources[e], root = m_root[source];
                if (m_circle[root] != circle.id) continue;
                const std::uint64_t* above = row_of(m_row[source]);
                for (int w = 0; w < Words; ++w) row[w] |= above[w];
                const std::int32_t bit = m_bit[root] - first;
                if (m_boundary[e] && bit >= 0 && bit < Words * bits_per_word) {
                    row[bit / bits_per_word] |= std::uint64_t{1} << (bit % bits_per_word);
                }
            }
            std::copy(row.begin(), row.end(), row_of(static_cast<std::int32_t>(i)));
            const std::int32_t own = m_bit[m_root[node]] - first;
            if (own >= 0 && own < Words * bits_per_word) {
                m_fed_back[node] = row[own / bits_per_word] >> (own % bits_per_word) & 1;
            }
        }
    }
}

// m_entry, exact for the nodes that are not fed back: everything of their subgraph that is above them
// reaches them without leaving the subgraph.
void Partitioner::mark_entries(const Circle& circle) {
    for (std::size_t i = circle.begin; i < circle.end; ++i) {
        const std::int32_t node = m_arena[i];
        Entry entry = Entry::none;
        for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
            const std::int32_t source = m_graph.input_sources[e];
            if (!m_boundary[e]) {
                entry = std::max(entry, m_entry[source]);
            } else if (m_root[source] != m_root[node]) {
                entry = std::max(entry,
                                 m_graph.is_graph_input(source) ? Entry::from_graph_inputs : Entry::from_ops);
            }
        }
        m_entry[node] = entry;
    }
}

// Decides the candidates, edges with no entry above their source: cut where an origin above the source
// reaches the head also by a detour, that is through a boundary or through a node at which one enters.
void Partitioner::find_shared_origins(const Circle& circle) {
    constexpr std::int32_t bits_per_pass = wide_words * bits_per_word;
    const std::size_t nodes = circle.end - circle.begin;
    m_bits.resize(std::max(m_bits.size(), nodes * wide_words));
    m_marked_bits.resize(std::max(m_marked_bits.size(), nodes * wide_words));
    for (std::size_t i = circle.begin; i < circle.end; ++i) m_flag[m_root[m_arena[i]]] = 0;
    for (const Candidate& candidate : m_candidates) m_flag[m_root[candidate.head]] = 1;
    std::int32_t origins = 0;
    for (std::size_t i = circle.begin; i < circle.end; ++i) {
        const std::int32_t node = m_arena[i];
        // From here on bits belong to origins, so m_bit is per node.
        m_bit[node] = m_graph.is_origin[node] && m_flag[m_root[node]] ? origins++ : -1;
    }
    for (std::int32_t first = 0; first < origins; first += bits_per_pass) {
        propagate_origins(circle, first);
        for (const Candidate& candidate : m_candidates) {
            const std::size_t above = wide_row(m_row[m_graph.input_sources[candidate.edge]]);
            const std::size_t detour = wide_row(m_row[candidate.head]);
            bool shared = false;
            for (int w = 0; w < wide_words; ++w)
                shared = shared || (m_bits[above + w] & m_marked_bits[detour + w]);
            if (shared) m_cuts.push_back(candidate.edge);
        }
    }
}

void Partitioner::propagate_origins(const Circle& circle, std::int32_t first_bit) {
    for (std::size_t i = circle.begin; i < circle.end; ++i) {
        const std::int32_t node = m_arena[i];
        std::array<std::uint64_t, wide_words> all{}, marked{};
        bool entered = false;
        for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
            const std::int32_t source = m_graph.input_sources[e], root = m_root[source];
            const bool boundary = m_boundary[e];
            entered = entered || (boundary && root != m_root[node]);
            if (m_circle[root] != circle.id) continue;
            const std::size_t above = wide_row(m_row[source]);
            for (int w = 0; w < wide_words; ++w) {
                all[w] |= m_bits[above + w];
                marked[w] |= boundary ? m_bits[above + w] : m_marked_bits[above + w];
            }
        }
        const std::int32_t bit = m_bit[node] - first_bit;
        if (m_bit[node] >= 0 && bit >= 0 && bit < wide_words * bits_per_word) {
            all[bit / bits_per_word] |= std::uint64_t{1} << (bit % bits_per_word);
        }
        const std::size_t row = wide_row(m_row[node]);
        for (int w = 0; w < wide_words; ++w) {
            m_bits[row + w] = all[w];
            m_marked_bits[row + w] = entered ? all[w] : marked[w];
        }
    }
}

// Rule 3: cuts single nodes off until no circle is left, the best ranked node of all circles first.
void Partitioner::isolate_nodes(std::vector<Circle>& circles) {
    while (!circles.empty()) {
        std::uint64_t best_rank = std::numeric_limits<std::uint64_t>::max();
        std::size_t best_circle = 0;
        for (std::size_t c = 0; c < circles.size(); ++c) {
            for (std::size_t i = circles[c].begin; i < circles[c].end; ++i) {
                const std::uint64_t rank = isolation_rank(m_arena[i]);
                if (rank < best_rank) {
                    best_rank = rank;
                    best_circle = c;
                }
            }
        }
        const auto node = static_cast<std::int32_t>(best_rank & 0xFFFFFFFF);
        for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
            m_boundary[e] = 1;  // inputs from other subgraphs are boundaries already
        }
        const Circle changed = circles[best_circle];
        circles.erase(circles.begin() + static_cast<std::ptrdiff_t>(best_circle));
        connect(changed);
        find_circles(changed, false, circles);
    }
}

// Smaller is better; the node itself stands in the low 32 bits, and nodes without inner inputs come last.
std::uint64_t Partitioner::isolation_rank(std::int32_t node) const {
    std::uint64_t inner_inputs = 0;
    bool enters_from_circle = false, shares_source = false, has_leaf_input = false;
    for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
        const std::int32_t source = m_graph.input_sources[e];
        if (m_boundary[e]) {
            const std::int32_t root = m_root[source];
            enters_from_circle = enters_from_circle || (root != m_root[node] && m_circle[root] >= 0);
        } else {
            ++inner_inputs;
            shares_source = shares_source || m_graph.readers[source] > 1;
            has_leaf_input = has_leaf_input || m_graph.is_leaf[source];
        }
    }
    if (inner_inputs == 0) return std::numeric_limits<std::uint64_t>::max();
    const bool is_linear = inner_inputs == 1 && m_graph.readers[node] <= 1;
    std::uint64_t rank = !enters_from_circle;
    rank = rank << 1 | std::uint64_t{!shares_source};
    rank = rank << 1 | std::uint64_t{has_leaf_input};
    rank = rank << 1 | std::uint64_t{is_linear};
    rank = rank << 27 | inner_inputs;
    return rank << 32 | static_cast<std::uint32_t>(node);
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
