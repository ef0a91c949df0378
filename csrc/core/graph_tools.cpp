#include "ov_autoplace/graph_tools.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <stdexcept>
#include <string>

namespace ov_autoplace {
namespace {

struct Adjacency {
    std::vector<std::int32_t> offsets;
    std::vector<std::int32_t> targets;
};

// Larger numbers of nodes come from a mistake, and would take all memory before anybody noticed.
constexpr std::int32_t most_nodes = 1 << 26;

void check_nodes(std::int32_t n, const EdgeList& edges) {
    if (n < 0) throw std::invalid_argument("the number of nodes is negative: " + std::to_string(n));
    if (n > most_nodes || edges.count > std::numeric_limits<std::int32_t>::max()) {
        throw std::invalid_argument("a graph of " + std::to_string(n) + " nodes and " +
                                    std::to_string(edges.count) + " edges is too large; at most " +
                                    std::to_string(most_nodes) + " nodes and 2^31 - 1 edges are supported");
    }
    for (std::size_t i = 0; i < 2 * edges.count; ++i) {
        if (edges.pairs[i] < 0 || edges.pairs[i] >= n) {
            throw std::invalid_argument("edge " + std::to_string(i / 2) + " names node " +
                                        std::to_string(edges.pairs[i]) + "; the graph has " +
                                        std::to_string(n));
        }
    }
}

// Successors of every node in CSR form; `name` maps the ends of an edge, loops are left out.
template <typename Name>
Adjacency successors(std::int32_t n, const EdgeList& edges, const Name& name) {
    Adjacency result{std::vector<std::int32_t>(n + 1), {}};
    for (std::size_t e = 0; e < edges.count; ++e) {
        if (name(edges.from(e)) != name(edges.to(e))) ++result.offsets[name(edges.from(e)) + 1];
    }
    std::partial_sum(result.offsets.begin(), result.offsets.end(), result.offsets.begin());
    result.targets.resize(result.offsets[n]);
    std::vector<std::int32_t> next(result.offsets.begin(), result.offsets.end() - 1);
    for (std::size_t e = 0; e < edges.count; ++e) {
        const std::int32_t from = name(edges.from(e)), to = name(edges.to(e));
        if (from != to) result.targets[next[from]++] = to;
    }
    return result;
}

std::vector<std::int32_t> in_degrees(const Adjacency& graph) {
    std::vector<std::int32_t> degrees(graph.offsets.size() - 1);
    for (const std::int32_t target : graph.targets) ++degrees[target];
    return degrees;
}

// Disjoint sets over 0..n-1; the representative of a set is its smallest member.
class DisjointSets {
public:
    explicit DisjointSets(std::int32_t n) : m_parent(n) { std::iota(m_parent.begin(), m_parent.end(), 0); }

    std::int32_t find(std::int32_t node) {
        while (m_parent[node] != node) {
            m_parent[node] = m_parent[m_parent[node]];
            node = m_parent[node];
        }
        return node;
    }
    void unite(std::int32_t a, std::int32_t b) {
        a = find(a);
        b = find(b);
        m_parent[std::max(a, b)] = std::min(a, b);
    }

private:
    std::vector<std::int32_t> m_parent;
};

// Strongly connected components, numbered in reverse topological order: Tarjan, "Depth-first search and
// linear graph algorithms" (1972).
std::vector<std::int32_t> strong_components(const Adjacency& graph) {
    const auto& [offsets, targets] = graph;
    const auto n = static_cast<std::int32_t>(offsets.size()) - 1;
    constexpr std::int32_t unseen = -1;
    std::vector<std::int32_t> order(n, unseen), low(n), component(n, unseen),
        next(offsets.begin(), offsets.end() - 1);
    std::vector<std::int32_t> path, open;
    std::int32_t visited = 0, count = 0;
    for (std::int32_t start = 0; start < n; ++start) {
        if (order[start] != unseen) continue;
        path.push_back(start);
        while (!path.empty()) {
            const std::int32_t node = path.back();
            if (order[node] == unseen) {
                order[node] = low[node] = visited++;
                open.push_back(node);
            }
            if (next[node] < offsets[node + 1]) {
                const std::int32_t target = targets[next[node]++];
                if (order[target] == unseen) {
                    path.push_back(target);
                } else if (component[target] == unseen) {
                    low[node] = std::min(low[node], order[target]);
                }
                continue;
            }
            path.pop_back();
            if (!path.empty()) low[path.back()] = std::min(low[path.back()], low[node]);
            if (low[node] != order[node]) continue;
            std::int32_t member = unseen;
            do {
                member = open.back();
                open.pop_back();
                component[member] = count;
            } while (member != node);
            ++count;
        }
    }
    return component;
}

}  // namespace

std::vector<std::int32_t> connected_labels(std::int32_t n, const EdgeList& pairs) {
    check_nodes(n, pairs);
    DisjointSets sets(n);
    for (std::size_t e = 0; e < pairs.count; ++e) sets.unite(pairs.from(e), pairs.to(e));
    std::vector<std::int32_t> labels(n);
    std::int32_t count = 0;
    // A representative is the smallest of its set, so it is numbered before the other members ask for it.
    for (std::int32_t node = 0; node < n; ++node) {
        const std::int32_t root = sets.find(node);
        labels[node] = root == node ? count++ : labels[root];
    }
    return labels;
}

std::vector<std::int32_t> merge_cycles(const std::vector<std::int32_t>& labels, const EdgeList& edges) {
    const auto n = static_cast<std::int32_t>(std::min<std::size_t>(labels.size(), most_nodes + 1));
    check_nodes(n, edges);
    std::int32_t classes = 0;
    for (const std::int32_t label : labels) {
        if (label < 0 || label >= n) {
            throw std::invalid_argument("label " + std::to_string(label) + " is outside 0.." +
                                        std::to_string(n - 1));
        }
        classes = std::max(classes, label + 1);
    }
    const auto class_of = [&](std::int32_t node) { return labels[node]; };
    const Adjacency contracted = successors(classes, edges, class_of);
    const std::vector<std::int32_t> component = strong_components(contracted);
    const auto component_of = [&](std::int32_t node) { return component[labels[node]]; };

    std::vector<std::int32_t> smallest(classes, n);
    for (std::int32_t node = n - 1; node >= 0; --node) smallest[component_of(node)] = node;
    const Adjacency merged = successors(classes, edges, component_of);
    std::vector<std::int32_t> pending = in_degrees(merged);

    using Ready = std::pair<std::int32_t, std::int32_t>;  // smallest member, component
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    for (std::int32_t c = 0; c < classes; ++c) {
        if (smallest[c] < n && pending[c] == 0) ready.emplace(smallest[c], c);
    }
    std::vector<std::int32_t> number(classes, -1);
    for (std::int32_t count = 0; !ready.empty(); ++count) {
        const std::int32_t c = ready.top().second;
        ready.pop();
        number[c] = count;
        for (std::int32_t i = merged.offsets[c]; i < merged.offsets[c + 1]; ++i) {
            const std::int32_t next = merged.targets[i];
            if (--pending[next] == 0) ready.emplace(smallest[next], next);
        }
    }
    std::vector<std::int32_t> result(n);
    for (std::int32_t node = 0; node < n; ++node) result[node] = number[component_of(node)];
    return result;
}

}  // namespace ov_autoplace
