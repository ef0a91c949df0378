// The cheapest set of nodes for each device alone, where the pieces that it falls into cost something.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ov_autoplace/subset_sweep.hpp"

namespace ov_autoplace {

// What D devices pay for sets of nodes. HETERO runs a set as subgraphs that must not wait for each other: two
// nodes of the set are never in one subgraph when a path from one to the other leaves the set. Each subgraph
// is launched, and receives each tensor that it reads and does not make. All arrays are by device in their
// rows.
struct PiecePrices {
    std::size_t devices = 0;
    const double* price = nullptr;      // per chosen node; infinite where it cannot be chosen
    const double* leaving = nullptr;    // per star, for each subgraph on other devices that receives it
    const double* entering = nullptr;   // per star from another device, for each subgraph that receives it
    const double* returning = nullptr;  // per star from another subgraph of the same device, likewise
    const double* launch = nullptr;     // per subgraph
};

// Dynamic programming along the order of the nodes' numbers, which is topological: heads of stars are
// producers, members consumers. A state is which of the nodes that still matter are chosen. What is paid is
// never more than what HETERO's subgraphs of the set cost, whatever the other devices do.
class PieceSweep {
public:
    // Throws std::invalid_argument for a star that names no node or whose head is not before its members.
    // With more than `most_states` states over all steps, less is known of paths; if that does not
    // help, the sweep is too wide and must not be used.
    PieceSweep(const StarsView& stars, std::int64_t most_states);

    bool is_narrow() const { return m_is_narrow; }
    std::int32_t nodes() const { return m_nodes; }
    std::size_t stars() const { return m_stars; }

    // Each device's cheapest set, the empty one among them. Throws std::invalid_argument for prices that are
    // negative (those of nodes may be) or no numbers, std::logic_error where the sweep is too wide.
    std::vector<Subset> cheapest(const PiecePrices& prices) const;

private:
    // What a decision (0 = left, 1 = taken) leads to, by the state before it.
    struct Decision {
        std::vector<std::uint32_t> to;       // the state after it
        std::vector<std::uint32_t> payment;  // in Step::payments
    };
    struct Step {
        Decision decisions[2];
        std::vector<std::vector<std::int32_t>> payments;  // indices of prices, see Item
    };
    class Planner;

    std::int32_t m_nodes;
    std::size_t m_stars;
    bool m_is_narrow = false;
    std::vector<Step> m_steps;
};

}  // namespace ov_autoplace
