#include "ov_autoplace/partition_parts.hpp"

#include <algorithm>

namespace ov_autoplace {

Parts::Parts(std::int32_t nodes)
    : part(nodes), size(nodes), cycle(nodes), first(nodes), next(nodes), previous(nodes), active(nodes) {}

void Parts::clear() {
    count = 0;
    cycle_parts.clear();
    std::fill(active.begin(), active.end(), std::uint8_t{0});
}

void Parts::add(std::int32_t node, std::int32_t in_cycle) {
    if (cycle_parts.size() <= static_cast<std::size_t>(in_cycle)) cycle_parts.resize(in_cycle + 1);
    ++cycle_parts[in_cycle];
    cycle[count] = in_cycle;
    size[count] = 1;
    first[count] = none;
    part[node] = count++;
}

void Parts::activate(std::int32_t node) {
    if (active[node]) return;
    active[node] = 1;
    link(node, part[node]);
}

std::int32_t Parts::move_out(const std::vector<std::int32_t>& nodes) {
    const std::int32_t from = part[nodes[0]], to = count++;
    cycle[to] = cycle[from];
    if (cycle[to] != none) ++cycle_parts[cycle[to]];
    size[to] = static_cast<std::int32_t>(nodes.size());
    size[from] -= size[to];
    first[to] = none;
    for (const std::int32_t node : nodes) {
        if (active[node]) {
            unlink(node);
            link(node, to);
        }
        part[node] = to;
    }
    return to;
}

std::int32_t Parts::new_cycle() {
    cycle_parts.push_back(0);
    return static_cast<std::int32_t>(cycle_parts.size()) - 1;
}

void Parts::link(std::int32_t node, std::int32_t to) {
    previous[node] = none;
    next[node] = first[to];
    if (first[to] != none) previous[first[to]] = node;
    first[to] = node;
}

void Parts::unlink(std::int32_t node) {
    const std::int32_t after = next[node], before = previous[node];
    if (after != none) previous[after] = before;
    (before == none ? first[part[node]] : next[before]) = after;
}

}  // namespace ov_autoplace
