// Small algorithms on directed graphs given as edge lists: components and cycles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ov_autoplace {

// An edge list as it comes from a row-major int32[K, 2] array: from, to, from, to, ...
struct EdgeList {
    const std::int32_t* pairs = nullptr;
    std::size_t count = 0;

    std::int32_t from(std::size_t edge) const { return pairs[2 * edge]; }
    std::int32_t to(std::size_t edge) const { return pairs[2 * edge + 1]; }
};

// Dense set numbers of 0..n-1, joined by `pairs`, in order of first appearance.
std::vector<std::int32_t> connected_labels(std::int32_t n, const EdgeList& pairs);

// Joins the classes of `labels` that lie on a common cycle of the contracted graph. The new labels are
// dense and number the classes in a topological order, ties broken by the smallest member.
std::vector<std::int32_t> merge_cycles(const std::vector<std::int32_t>& labels, const EdgeList& edges);

}  // namespace ov_autoplace
