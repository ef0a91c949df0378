#include "ov_autoplace/max_flow.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

namespace ov_autoplace {
namespace {

constexpr std::int32_t none = -1;
// Heights are made exact again after this much work per node and arc; a relabelling counts for a dozen arcs.
constexpr std::int64_t work_per_node = 6;
constexpr std::int64_t relabel_work = 12;

struct Arc {
    std::int32_t head;
    std::int32_t mate;  // the same arc seen from its head
    std::int64_t residual;
};

// Highest-label push-relabel (Goldberg and Tarjan, "A New Approach to the Maximum-Flow Problem", 1988) with
// global relabelling and the gap heuristic (Cherkassky and Goldberg, "On Implementing the Push-Relabel Method
// for the Maximum Flow Problem", 1997).
//
// Only the first phase runs: it ends with a maximum preflow, in which some excess is left on nodes that
// cannot reach the sink. A cut with source side S has the value
//     excess(sink) + excesses outside of S + residual capacities that leave S,
// so the minimum cuts are the sets that hold every excess and that no residual arc leaves, and no second
// phase has to bring the excess back to the source.
class PushRelabel {
public:
    explicit PushRelabel(const FlowNetwork& network);
    MinimumCut run();

private:
    void link(std::int32_t node);
    void unlink(std::int32_t node);
    void activate(std::int32_t node);
    void global_relabel();
    void close_gap(std::int32_t level);
    void discharge(std::int32_t node);
    void relabel(std::int32_t node);
    std::int64_t push(std::int32_t node, Arc& arc, std::int64_t wanted);
    template <typename Passable>
    void search(std::vector<std::uint8_t>& reached, Passable passable);

    std::int32_t m_nodes, m_source, m_sink;
    std::vector<std::int32_t> m_first;  // CSR of arcs by tail
    std::vector<Arc> m_arcs;
    std::vector<std::int32_t> m_current;  // the arc at which a node's scan goes on
    std::vector<std::int64_t> m_excess;
    // Height of each node; the number of nodes means that it cannot reach the sink.
    std::vector<std::int32_t> m_height;
    // Per height: a doubly linked list of all nodes, and a stack of those with excess.
    std::vector<std::int32_t> m_level, m_next, m_previous;
    std::vector<std::int32_t> m_active, m_next_active;
    std::int32_t m_highest = 0, m_highest_active = 0;
    std::vector<std::int32_t> m_queue;
    std::int64_t m_work = 0;
};

void check(const FlowNetwork& network) {
    const auto is_node = [&](std::int32_t node) { return node >= 0 && node < network.nodes; };
    if (!is_node(network.source) || !is_node(network.sink) || network.source == network.sink) {
        throw std::invalid_argument("a flow needs a source and a sink that are two nodes of the network");
    }
    if (network.arcs > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()) / 2) {
        throw std::invalid_argument("a flow network of " + std::to_string(network.arcs) +
                                    " arcs is too large");
    }
    std::int64_t most = std::numeric_limits<std::int64_t>::max();
    for (std::size_t a = 0; a < network.arcs; ++a) {
        if (!is_node(network.tail[a]) || !is_node(network.head[a])) {
            throw std::invalid_argument("arc " + std::to_string(a) + " names a node that does not exist");
        }
        const std::int64_t forward = network.forward[a], backward = network.backward[a];
        if (forward < 0 || backward < 0) {
            throw std::invalid_argument("arc " + std::to_string(a) + " has a negative capacity");
        }
        // A residual capacity is at most the sum of both ways; an excess at most what leaves the source.
        const bool overflows = forward > std::numeric_limits<std::int64_t>::max() - backward;
        const std::int64_t leaving = network.tail[a] == network.source   ? forward
                                     : network.head[a] == network.source ? backward
                                                                         : 0;
        if (overflows || leaving > most) {
            throw std::invalid_argument("the capacities of the flow network add up to more than 2**63");
        }
        most -= leaving;
    }
}

PushRelabel::PushRelabel(const FlowNetwork& network)
    : m_nodes(network.nodes),
      m_source(network.source),
      m_sink(network.sink),
      m_first(network.nodes + 1, 0),
      m_arcs(2 * network.arcs),
      m_excess(network.nodes, 0),
      m_height(network.nodes, network.nodes),
      m_level(network.nodes + 1, none),
      m_next(network.nodes, none),
      m_previous(network.nodes, none),
      m_active(network.nodes + 1, none),
      m_next_active(network.nodes, none) {
    for (std::size_t a = 0; a < network.arcs; ++a) {
        ++m_first[network.tail[a] + 1];
        ++m_first[network.head[a] + 1];
    }
    std::partial_sum(m_first.begin(), m_first.end(), m_first.begin());
    m_current.assign(m_first.begin(), m_first.end() - 1);
    for (std::size_t a = 0; a < network.arcs; ++a) {
        const std::int32_t out = m_current[network.tail[a]]++, back = m_current[network.head[a]]++;
        m_arcs[out] = {network.head[a], back, network.forward[a]};
        m_arcs[back] = {network.tail[a], out, network.backward[a]};
    }
    m_queue.reserve(network.nodes);
}

void PushRelabel::link(std::int32_t node) {
    const std::int32_t height = m_height[node];
    m_next[node] = m_level[height];
    m_previous[node] = none;
    if (m_level[height] != none) m_previous[m_level[height]] = node;
    m_level[height] = node;
    m_highest = std::max(m_highest, height);
}

void PushRelabel::unlink(std::int32_t node) {
    if (m_previous[node] == none) {
        m_level[m_height[node]] = m_next[node];
    } else {
        m_next[m_previous[node]] = m_next[node];
    }
    if (m_next[node] != none) m_previous[m_next[node]] = m_previous[node];
}

void PushRelabel::activate(std::int32_t node) {
    const std::int32_t height = m_height[node];
    m_next_active[node] = m_active[height];
    m_active[height] = node;
    m_highest_active = std::max(m_highest_active, height);
}

// Visits what can be reached from the nodes in m_queue over arcs for which `passable` holds.
template <typename Passable>
void PushRelabel::search(std::vector<std::uint8_t>& reached, Passable passable) {
    for (std::size_t i = 0; i < m_queue.size(); ++i) {
        const std::int32_t node = m_queue[i];
        for (std::int32_t a = m_first[node]; a < m_first[node + 1]; ++a) {
            const std::int32_t other = m_arcs[a].head;
            if (reached[other] || !passable(m_arcs[a])) continue;
            reached[other] = 1;
            m_queue.push_back(other);
        }
    }
}

// Sets every height to the distance to the sink in the residual network.
void PushRelabel::global_relabel() {
    std::fill(m_height.begin(), m_height.end(), m_nodes);
    std::fill(m_level.begin(), m_level.end(), none);
    std::fill(m_active.begin(), m_active.end(), none);
    m_highest = m_highest_active = 0;
    m_height[m_sink] = 0;
    m_queue.assign(1, m_sink);
    for (std::size_t i = 0; i < m_queue.size(); ++i) {
        const std::int32_t node = m_queue[i];
        for (std::int32_t a = m_first[node]; a < m_first[node + 1]; ++a) {
            const std::int32_t other = m_arcs[a].head;
            if (m_height[other] != m_nodes || other == m_source || m_arcs[m_arcs[a].mate].residual == 0) {
                continue;
            }
            m_height[other] = m_height[node] + 1;
            m_current[other] = m_first[other];
            link(other);
            if (m_excess[other] > 0) activate(other);
            m_queue.push_back(other);
        }
    }
    m_work = 0;
}

// Nothing is left on a level: what lies above it cannot reach the sink any more.
void PushRelabel::close_gap(std::int32_t level) {
    for (std::int32_t above = level + 1; above <= m_highest; ++above) {
        for (std::int32_t node = m_level[above]; node != none; node = m_next[node]) {
            m_height[node] = m_nodes;
        }
        m_level[above] = m_active[above] = none;
    }
    m_highest = level - 1;
    m_highest_active = std::min(m_highest_active, m_highest);
}

std::int64_t PushRelabel::push(std::int32_t node, Arc& arc, std::int64_t wanted) {
    const std::int64_t amount = std::min(wanted, arc.residual);
    arc.residual -= amount;
    m_arcs[arc.mate].residual += amount;
    m_excess[node] -= amount;
    m_excess[arc.head] += amount;
    return amount;
}

void PushRelabel::relabel(std::int32_t node) {
    std::int32_t lowest = m_nodes;
    for (std::int32_t a = m_first[node]; a < m_first[node + 1]; ++a) {
        if (m_arcs[a].residual > 0 && m_height[m_arcs[a].head] + 1 < lowest) {
            lowest = m_height[m_arcs[a].head] + 1;
            m_current[node] = a;
        }
    }
    m_work += relabel_work + (m_first[node + 1] - m_first[node]);
    const std::int32_t level = m_height[node];
    unlink(node);
    m_height[node] = lowest;
    if (lowest < m_nodes) link(node);
    if (m_level[level] == none) {
        // The node itself is above the gap.
        close_gap(level);
    }
}

void PushRelabel::discharge(std::int32_t node) {
    while (m_height[node] < m_nodes) {
        for (std::int32_t& a = m_current[node]; a < m_first[node + 1]; ++a) {
            Arc& arc = m_arcs[a];
            if (arc.residual == 0 || m_height[node] != m_height[arc.head] + 1) continue;
            const bool was_idle = m_excess[arc.head] == 0 && arc.head != m_sink;
            push(node, arc, m_excess[node]);
            if (was_idle) activate(arc.head);
            if (m_excess[node] == 0) return;
        }
        relabel(node);
    }
}

MinimumCut PushRelabel::run() {
    for (std::int32_t a = m_first[m_source]; a < m_first[m_source + 1]; ++a) {
        if (m_arcs[a].head != m_source) push(m_source, m_arcs[a], m_arcs[a].residual);
    }
    m_excess[m_source] = 0;
    global_relabel();
    const std::int64_t enough = work_per_node * m_nodes + static_cast<std::int64_t>(m_arcs.size()) / 2;
    while (true) {
        while (m_highest_active > 0 && m_active[m_highest_active] == none) --m_highest_active;
        if (m_highest_active <= 0) break;
        const std::int32_t node = m_active[m_highest_active];
        m_active[m_highest_active] = m_next_active[node];
        discharge(node);
        if (m_work > enough) global_relabel();
    }

    MinimumCut cut;
    cut.flow = m_excess[m_sink];
    cut.smallest.assign(m_nodes, 0);
    m_queue.clear();
    for (std::int32_t node = 0; node < m_nodes; ++node) {
        if (node != m_source && (node == m_sink || m_excess[node] == 0)) continue;
        cut.smallest[node] = 1;
        m_queue.push_back(node);
    }
    search(cut.smallest, [](const Arc& arc) { return arc.residual > 0; });
    std::vector<std::uint8_t> reaches_sink(m_nodes, 0);
    reaches_sink[m_sink] = 1;
    m_queue.assign(1, m_sink);
    search(reaches_sink, [this](const Arc& arc) { return m_arcs[arc.mate].residual > 0; });
    cut.largest.resize(m_nodes);
    for (std::int32_t node = 0; node < m_nodes; ++node) cut.largest[node] = !reaches_sink[node];
    return cut;
}

}  // namespace

MinimumCut minimum_cut(const FlowNetwork& network) {
    check(network);
    return PushRelabel(network).run();
}

}  // namespace ov_autoplace
