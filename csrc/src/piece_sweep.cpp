#include "ov_autoplace/piece_sweep.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

namespace ov_autoplace {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t most_items = 63;  // of one decision: a bit each
constexpr std::size_t most_bits = 24;   // of a state

// A price's number is its kind times the number of stars, plus the star's.
enum Kind : std::int32_t { leaving, entering, returning, launch };

using Mask = std::uint64_t;  // of nodes that still matter; a state is one, with the chosen nodes' bits

bool holds_all(Mask state, Mask nodes) { return (state & nodes) == nodes; }

// Nodes that, all chosen, may be in the deciding node's subgraph and have paid for it; unless a second group
// of nodes, where there is one, is all chosen too.
struct Excuse {
    Mask all = 0, unless = 0;
};

// A price to be paid for a decision in some of the states before it: not in those that hold none of `with` or
// any of `without`, hold all of `parted`, or have an excuse.
struct Item {
    std::int32_t price;
    Mask with = 0, without = 0, parted = 0;
    bool is_outside = false;  // excuses ask for nodes that are not chosen
    std::vector<Excuse> excuses{};

    bool is_paid(Mask state) const {
        if (!holds_all(state, with) || (state & without) || (parted && holds_all(state, parted)))
            return false;
        const Mask seen = is_outside ? ~state : state;
        return std::none_of(excuses.begin(), excuses.end(), [&](const Excuse& excuse) {
            return holds_all(seen, excuse.all) && !(excuse.unless && holds_all(seen, excuse.unless));
        });
    }
};

}  // namespace

class PieceSweep::Planner {
public:
    explicit Planner(const StarsView& stars);

    // The steps, or false if there are too many states. `knows_paths`: a node matters as long as it may lie
    // on a path between two others that do; otherwise only while its tensor is read.
    bool plan(std::int64_t most_states, bool knows_paths, std::vector<Step>& steps) const;

private:
    bool reaches(std::int32_t from, std::int32_t to) const {
        return m_reach[static_cast<std::size_t>(from) * m_words + to / 64] >> (to % 64) & 1;
    }
    std::vector<std::int32_t> matters_until(bool knows_paths) const;
    Mask bit(const std::vector<std::int32_t>& kept, std::int32_t node) const;
    Mask between(const std::vector<std::int32_t>& kept, std::int32_t from, std::int32_t to) const;
    std::vector<Item> items(const std::vector<std::int32_t>& kept, std::int32_t node, bool takes) const;

    std::int32_t m_nodes;
    std::int32_t m_stars;
    std::size_t m_words;
    std::vector<std::int32_t> m_head;
    std::vector<std::vector<std::int32_t>> m_members;  // of each star, ascending
    std::vector<std::vector<std::int32_t>> m_read;     // stars that each node reads
    std::vector<std::int32_t> m_last_reader;           // of what each node makes
    std::vector<Mask> m_reach;
};

PieceSweep::Planner::Planner(const StarsView& stars)
    : m_nodes(stars.nodes),
      m_stars(static_cast<std::int32_t>(stars.stars)),
      m_words((static_cast<std::size_t>(stars.nodes) + 63) / 64),
      m_head(stars.head, stars.head + stars.stars),
      m_members(stars.stars),
      m_read(stars.nodes),
      m_last_reader(stars.nodes, -1),
      m_reach(m_words * stars.nodes, 0) {
    std::vector<std::vector<std::int32_t>> readers(stars.nodes);
    for (std::int32_t k = 0; k < m_stars; ++k) {
        auto& members = m_members[k];
        members.assign(stars.members + stars.offsets[k], stars.members + stars.offsets[k + 1]);
        std::sort(members.begin(), members.end());
        members.erase(std::unique(members.begin(), members.end()), members.end());
        const std::int32_t head = m_head[k];
        if (head < 0 || head >= m_nodes || (!members.empty() && members.back() >= m_nodes))
            throw std::invalid_argument("a star names no node");
        if (!members.empty() && members.front() <= head)
            throw std::invalid_argument("a star's head is not before its members");
        for (const std::int32_t member : members) m_read[member].push_back(k);
        readers[head].insert(readers[head].end(), members.begin(), members.end());
        if (!members.empty()) m_last_reader[head] = std::max(m_last_reader[head], members.back());
    }
    for (std::int32_t from = m_nodes; from-- > 0;) {
        Mask* own = &m_reach[from * m_words];
        for (const std::int32_t to : readers[from]) {
            own[to / 64] |= Mask{1} << (to % 64);
            for (std::size_t w = 0; w < m_words; ++w) own[w] |= m_reach[to * m_words + w];
        }
    }
}

// The last step before which each node's bit is in the state.
std::vector<std::int32_t> PieceSweep::Planner::matters_until(bool knows_paths) const {
    std::vector<std::int32_t> until = m_last_reader;
    for (std::int32_t k = 0; k < m_stars; ++k) {
        const auto& members = m_members[k];
        for (std::size_t i = 0; i < members.size(); ++i) {
            until[members[i]] = std::max(until[members[i]], members.back());
            if (!knows_paths) continue;
            for (std::size_t j = 0; j <= i; ++j) {
                const std::int32_t from = j == 0 ? m_head[k] : members[j - 1];
                for (std::int32_t b = from + 1; b < members[i]; ++b)
                    if (reaches(from, b) && reaches(b, members[i])) until[b] = std::max(until[b], members[i]);
            }
        }
    }
    return until;
}

Mask PieceSweep::Planner::bit(const std::vector<std::int32_t>& kept, std::int32_t node) const {
    return Mask{1} << (std::lower_bound(kept.begin(), kept.end(), node) - kept.begin());
}

// Kept nodes on paths between two others.
Mask PieceSweep::Planner::between(const std::vector<std::int32_t>& kept, std::int32_t from,
                                  std::int32_t to) const {
    Mask mask = 0;
    for (std::size_t i = 0; i < kept.size(); ++i)
        if (kept[i] > from && reaches(from, kept[i]) && reaches(kept[i], to)) mask |= Mask{1} << i;
    return mask;
}

// What may have to be paid when a node is decided. All counts are of subgraphs that differ for certain.
std::vector<Item> PieceSweep::Planner::items(const std::vector<std::int32_t>& kept, std::int32_t node,
                                             bool takes) const {
    std::vector<Item> items;
    for (const std::int32_t k : m_read[node]) {
        const Mask head = bit(kept, m_head[k]);
        const Mask joined = head | between(kept, m_head[k], node);
        Item from_elsewhere{takes ? entering * m_stars + k : leaving * m_stars + k};
        (takes ? from_elsewhere.without : from_elsewhere.with) = head;
        from_elsewhere.is_outside = !takes;
        Item from_here{returning * m_stars + k};
        from_here.with = head;
        from_here.parted = joined;
        for (const std::int32_t earlier : m_members[k]) {
            if (earlier == node) break;
            const Mask together = bit(kept, earlier) | between(kept, earlier, node);
            from_elsewhere.excuses.push_back({together, 0});
            from_here.excuses.push_back({together, head | between(kept, m_head[k], earlier)});
        }
        if (takes && joined != head) items.push_back(std::move(from_here));
        items.push_back(std::move(from_elsewhere));
    }
    if (!takes) return items;
    // A subgraph with an earlier node and this one has an edge from an earlier node to this one or a later
    // one.
    Item starts{launch * m_stars};
    for (const std::int32_t earlier : kept)
        if (m_last_reader[earlier] >= node)
            starts.excuses.push_back({bit(kept, earlier) | between(kept, earlier, node), 0});
    items.push_back(std::move(starts));
    return items;
}

bool PieceSweep::Planner::plan(std::int64_t most_states, bool knows_paths, std::vector<Step>& steps) const {
    const std::vector<std::int32_t> until = matters_until(knows_paths);
    std::vector<std::int32_t> kept;
    steps.assign(m_nodes, {});
    for (std::int32_t node = 0; node < m_nodes; ++node) {
        const std::size_t bits = kept.size();
        if (bits > most_bits || (most_states -= std::int64_t{1} << bits) < 0) return false;
        const std::uint32_t states = std::uint32_t{1} << bits;
        std::vector<std::int32_t> with_node = kept, after;
        with_node.push_back(node);
        std::vector<std::size_t> places;  // of what is kept, in the state before it with the node's bit
        for (std::size_t i = 0; i <= bits; ++i) {
            if (until[with_node[i]] <= node) continue;
            after.push_back(with_node[i]);
            places.push_back(i);
        }
        Step& step = steps[node];
        std::map<std::pair<bool, Mask>, std::uint32_t> known;
        for (const bool takes : {false, true}) {
            const std::vector<Item> own = items(kept, node, takes);
            if (own.size() > most_items) return false;
            Decision& decision = step.decisions[takes];
            decision.to.reserve(states);
            decision.payment.reserve(states);
            for (std::uint32_t state = 0; state < states; ++state) {
                Mask paid = 0;
                for (std::size_t i = 0; i < own.size(); ++i)
                    if (own[i].is_paid(state)) paid |= Mask{1} << i;
                const auto number = static_cast<std::uint32_t>(step.payments.size());
                const auto [found, is_new] = known.emplace(std::pair{takes, paid}, number);
                if (is_new) {
                    step.payments.emplace_back();
                    for (std::size_t i = 0; i < own.size(); ++i)
                        if (paid >> i & 1) step.payments.back().push_back(own[i].price);
                }
                const std::uint32_t full = state | (takes ? states : 0);
                std::uint32_t to = 0;
                for (std::size_t i = 0; i < places.size(); ++i) to |= (full >> places[i] & 1) << i;
                decision.to.push_back(to);
                decision.payment.push_back(found->second);
            }
        }
        kept.swap(after);
    }
    return true;
}

PieceSweep::PieceSweep(const StarsView& stars, std::int64_t most_states)
    : m_nodes(stars.nodes), m_stars(stars.stars) {
    const Planner planner(stars);
    m_is_narrow = planner.plan(most_states, true, m_steps) || planner.plan(most_states, false, m_steps);
    if (!m_is_narrow) m_steps.clear();
}

std::vector<Subset> PieceSweep::cheapest(const PiecePrices& prices) const {
    if (!m_is_narrow) throw std::logic_error("the sweep is too wide");
    const std::size_t devices = prices.devices;
    const auto is_price = [](double value) { return value > -infinity; };  // and a number
    const auto is_cost = [](double value) { return value >= 0 && value < infinity; };
    std::vector<double> costs;  // of each item, by device
    for (const double* kind : {prices.leaving, prices.entering, prices.returning})
        costs.insert(costs.end(), kind, kind + m_stars * devices);
    costs.insert(costs.end(), prices.launch, prices.launch + devices);
    if (!std::all_of(prices.price, prices.price + m_nodes * devices, is_price) ||
        !std::all_of(costs.begin(), costs.end(), is_cost))
        throw std::invalid_argument("a price is not a number, or infinite, or negative");
    // All devices at once: they walk the same states, side by side in memory.
    std::vector<std::vector<std::uint8_t>> takes(m_nodes);
    std::vector<double> rest(devices, 0.0), before, payments;
    for (std::int32_t node = m_nodes; node-- > 0;) {
        const Step& step = m_steps[node];
        payments.assign(step.payments.size() * devices, 0.0);
        for (std::size_t p = 0; p < step.payments.size(); ++p)
            for (const std::int32_t item : step.payments[p])
                for (std::size_t d = 0; d < devices; ++d)
                    payments[p * devices + d] += costs[item * devices + d];
        const auto& [left, taken] = step.decisions;
        const std::size_t states = left.to.size();
        before.resize(states * devices);
        takes[node].resize(states * devices);
        const double* price = prices.price + node * devices;
        for (std::size_t s = 0; s < states; ++s) {
            const double* pay_left = &payments[left.payment[s] * devices];
            const double* pay_taken = &payments[taken.payment[s] * devices];
            const double* rest_left = &rest[left.to[s] * devices];
            const double* rest_taken = &rest[taken.to[s] * devices];
            double* value = &before[s * devices];
            std::uint8_t* choice = &takes[node][s * devices];
            for (std::size_t d = 0; d < devices; ++d) {
                const double without = pay_left[d] + rest_left[d];
                const double with = pay_taken[d] + rest_taken[d] + price[d];
                choice[d] = with < without;
                value[d] = std::min(with, without);
            }
        }
        rest.swap(before);
    }
    std::vector<Subset> best;
    for (std::size_t d = 0; d < devices; ++d) {
        best.push_back({rest[d], std::vector<std::uint8_t>(m_nodes)});
        std::size_t state = 0;
        for (std::int32_t node = 0; node < m_nodes; ++node) {
            const std::uint8_t takes_it = takes[node][state * devices + d];
            best.back().chosen[node] = takes_it;
            state = m_steps[node].decisions[takes_it].to[state];
        }
    }
    return best;
}

}  // namespace ov_autoplace
