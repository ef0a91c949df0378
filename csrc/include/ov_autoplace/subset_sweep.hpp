// The cheapest subset of nodes within a weight limit, where splitting stars costs something.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ov_autoplace {

// K stars of `nodes` nodes: a head and its members, as CSR.
struct StarsView {
    std::int32_t nodes = 0;
    std::size_t stars = 0;
    const std::int32_t* head = nullptr;
    const std::int32_t* offsets = nullptr;
    const std::int32_t* members = nullptr;
};

// What a choice of nodes costs: `price` of each chosen node, `leaving` of each star whose head is chosen and
// some member is not, `entering` of each star whose head is not chosen and some member is. A price may be
// infinite; all others are finite, and weights are not negative.
struct SubsetPrices {
    const double* price = nullptr;
    const double* weight = nullptr;
    double capacity = 0.0;  // of the chosen nodes together; may be infinite
    const double* leaving = nullptr;
    const double* entering = nullptr;
};

struct Subset {
    double lower_bound = 0.0;  // below the cost of every subset within the limit
    // A subset that costs no more; it may be too heavy where the bound is below the minimum.
    std::vector<std::uint8_t> chosen;
};

// Dynamic programming along the order of the nodes' numbers. A state is what the stars that are not complete
// yet know of their seen nodes; which states there are depends on the stars alone and is worked out once.
class SubsetSweep {
public:
    // Throws std::invalid_argument for a star that names no node. With more than `most_states` states at one
    // step, the sweep is too wide and must not be used.
    SubsetSweep(const StarsView& stars, std::int32_t most_states);

    bool is_narrow() const { return m_is_narrow; }
    std::int32_t nodes() const { return m_nodes; }
    std::size_t stars() const { return m_stars; }

    // The cheapest subset, the empty one among them; memory and time are bounded by keeping at most
    // `most_labels` labels per step, beyond which `lower_bound` may be below the minimum. Throws
    // std::invalid_argument for prices that are not as above, std::logic_error where the sweep is too wide.
    Subset cheapest(const SubsetPrices& prices, std::int32_t most_labels) const;

private:
    // One step decides one node. A transition leads from a state before to one after it.
    struct Transition {
        std::int32_t from, to;
        bool takes;
        std::int32_t first_payment, last_payment;  // in m_payments
    };
    struct Step {
        std::int32_t states = 0;  // after the step
        std::vector<Transition> transitions;
    };
    struct Relaxation;
    class Labelling;

    void plan(const StarsView& stars, std::int32_t most_states);
    double payment(const Transition& t, const SubsetPrices& prices) const;
    Relaxation relax(const SubsetPrices& prices, double price_of_weight) const;

    std::int32_t m_nodes;
    std::size_t m_stars;
    bool m_is_narrow = true;
    std::vector<Step> m_steps;
    std::vector<std::int32_t> m_payments;  // 2 * star for leaving, 2 * star + 1 for entering
};

}  // namespace ov_autoplace
