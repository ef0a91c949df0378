// The subgraphs in HETERO's cycles, as rule 3 of its partitioning splits them (see partition_isolation.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ov_autoplace/partition_graph.hpp"

namespace ov_autoplace {

// Parts are the subgraphs that were in a cycle at the start, and what they split into. A cycle is a set of
// parts that wait for each other.
struct Parts {
    static constexpr std::int32_t none = -1;

    explicit Parts(std::int32_t nodes);

    bool is_single(std::int32_t part) const { return size[part] == 1; }
    void clear();
    // Makes a part of one node so far.
    void add(std::int32_t node, std::int32_t in_cycle);
    // Puts a node into the list of its part.
    void activate(std::int32_t node);
    // Makes a part of some nodes of another part, and returns it.
    std::int32_t move_out(const std::vector<std::int32_t>& nodes);
    // Makes a cycle of no parts so far.
    std::int32_t new_cycle();

    std::vector<std::int32_t> part;         // per node: its part, or none
    std::int32_t count = 0;                 // of parts
    std::vector<std::int32_t> size;         // per part: how many nodes it has
    std::vector<std::int32_t> cycle;        // per part: its cycle, or none
    std::vector<std::int32_t> cycle_parts;  // per cycle: how many parts it has

    // A list per part of its nodes with a cut edge: all that a search over parts has to look at.
    std::vector<std::int32_t> first;           // per part, or none
    std::vector<std::int32_t> next, previous;  // per node, or none
    std::vector<std::uint8_t> active;          // per node: is in the list of its part

private:
    void link(std::int32_t node, std::int32_t to);
    void unlink(std::int32_t node);
};

}  // namespace ov_autoplace
