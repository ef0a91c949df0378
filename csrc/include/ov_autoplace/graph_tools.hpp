// Small algorithms on directed graphs given as edge lists: components, cycles, convexity.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace ov_autoplace {

// An edge list as it comes from a row-major int32[K, 2] array: from, to, from, to, ...
struct EdgeList {
    const std::int32_t* pairs = nullptr;
    std::size_t count = 0;

    std::int32_t from(std::size_t edge) const { return pairs[2 * edge]; }
    std::int32_t to(std::size_t edge) const { return pairs[2 * edge + 1]; }
};

// Disjoint sets over 0..n-1; the representative of a set is its smallest member.
class DisjointSets {
public:
    explicit DisjointSets(std::int32_t n = 0);

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
        m_parent[a < b ? b : a] = a < b ? a : b;
    }
    // Makes `node` a set of its own; sound only when the node's whole set is separated.
    void separate(std::int32_t node) { m_parent[node] = node; }

private:
    std::vector<std::int32_t> m_parent;
};

// Dense set numbers of 0..n-1, joined by `pairs`, in order of first appearance.
std::vector<std::int32_t> connected_labels(std::int32_t n, const EdgeList& pairs);

// Joins the classes of `labels` that lie on a common cycle of the contracted graph. The new labels are
// dense and number the classes in a topological order, ties broken by the smallest member.
std::vector<std::int32_t> merge_cycles(const std::vector<std::int32_t>& labels, const EdgeList& edges);

bool is_acyclic(std::int32_t n, const EdgeList& edges);

// Whether no path leaves `members` (n flags) and comes back. Paths may run through any node, also in a
// graph with cycles.
bool is_convex(std::int32_t n, const EdgeList& edges, const bool* members);

// Strongly connected components of a graph in CSR form, numbered in reverse topological order.
std::vector<std::int32_t> strong_components(const std::vector<std::int32_t>& offsets,
                                            const std::vector<std::int32_t>& targets);

}  // namespace ov_autoplace
