#include "ov_autoplace/subset_sweep.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

namespace ov_autoplace {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double rounding = 1e-12;
constexpr int relaxations = 24;
constexpr std::int32_t beam_labels = 200;

// What a star that is not complete knows. `split`: it has been paid, and nothing else matters any more.
enum Status : char { nothing, head_in, head_out, split, member_in, member_out, members_differ };

// What seeing one more node of a star leads to; `pays` is 0 for leaving, 1 for entering, -1 for nothing.
std::pair<Status, int> seen(char status, bool is_head, bool takes) {
    if (is_head) {
        const bool differs = status == members_differ || status == (takes ? member_out : member_in);
        if (differs) return {split, takes ? 0 : 1};
        return {takes ? head_in : head_out, -1};
    }
    switch (status) {
        case nothing:
            return {takes ? member_in : member_out, -1};
        case head_in:
            return takes ? std::pair{head_in, -1} : std::pair{split, 0};
        case head_out:
            return takes ? std::pair{split, 1} : std::pair{head_out, -1};
        case member_in:
            return {takes ? member_in : members_differ, -1};
        case member_out:
            return {takes ? members_differ : member_out, -1};
        default:
            return {static_cast<Status>(status), -1};
    }
}

struct Touch {
    std::int32_t star;
    bool is_head;
};

std::vector<std::vector<Touch>> touches_of_nodes(const StarsView& stars, std::vector<std::int32_t>& unseen) {
    std::vector<std::vector<Touch>> touches(stars.nodes);
    const auto touch = [&](std::int32_t node, std::size_t star, bool is_head) {
        if (node < 0 || node >= stars.nodes) throw std::invalid_argument("a star names no node");
        touches[node].push_back({static_cast<std::int32_t>(star), is_head});
        ++unseen[star];
    };
    for (std::size_t k = 0; k < stars.stars; ++k) {
        touch(stars.head[k], k, true);
        for (std::int32_t e = stars.offsets[k]; e < stars.offsets[k + 1]; ++e)
            touch(stars.members[e], k, false);
    }
    return touches;
}

void check(const SubsetPrices& prices, std::int32_t nodes, std::size_t stars) {
    const auto is_price = [](double value) { return value > -infinity; };  // and a number
    const auto is_weight = [](double value) { return value >= 0 && value < infinity; };
    const auto is_finite = [](double value) { return std::isfinite(value); };
    if (!(prices.capacity >= 0) || !std::all_of(prices.price, prices.price + nodes, is_price) ||
        !std::all_of(prices.weight, prices.weight + nodes, is_weight) ||
        !std::all_of(prices.leaving, prices.leaving + stars, is_finite) ||
        !std::all_of(prices.entering, prices.entering + stars, is_finite))
        throw std::invalid_argument("a price or a weight is not a number, or infinite, or a weight negative");
}

}  // namespace

// The minimum without a limit, where weight has a price instead (Lagrangian relaxation).
struct SubsetSweep::Relaxation {
    double price_of_weight = 0.0;
    // Per step, from 0, and state before it: the least that is still to be paid, weight's price included.
    std::vector<std::vector<double>> rest;
    std::vector<std::uint8_t> chosen;
    double cost = 0.0;  // of `chosen`, without weight's price
    double weight = 0.0;
    double value() const { return rest.front().front(); }
};

SubsetSweep::SubsetSweep(const StarsView& stars, std::int32_t most_states)
    : m_nodes(stars.nodes), m_stars(stars.stars), m_steps(stars.nodes) {
    plan(stars, most_states);
}

void SubsetSweep::plan(const StarsView& stars, std::int32_t most_states) {
    std::vector<std::int32_t> unseen(stars.stars, 0);
    const auto touches = touches_of_nodes(stars, unseen);
    std::vector<std::int32_t> live;  // stars seen in part, a byte of a state each
    std::map<std::string, std::int32_t> states{{std::string(), 0}};  // before the step
    for (std::int32_t i = 0; i < m_nodes; ++i) {
        std::vector<std::size_t> place;  // of each touched star in a state
        for (const auto& touch : touches[i]) {
            const auto found = std::find(live.begin(), live.end(), touch.star);
            place.push_back(static_cast<std::size_t>(found - live.begin()));
            if (found == live.end()) live.push_back(touch.star);
            --unseen[touch.star];
        }
        std::vector<std::size_t> kept;
        for (std::size_t p = 0; p < live.size(); ++p)
            if (unseen[live[p]] > 0) kept.push_back(p);
        std::map<std::string, std::int32_t> after;
        for (const auto& [state, from] : states) {
            for (const bool takes : {false, true}) {
                const auto first = static_cast<std::int32_t>(m_payments.size());
                std::string status = state;
                status.resize(live.size(), nothing);
                for (std::size_t k = 0; k < place.size(); ++k) {
                    const Touch& touch = touches[i][k];
                    const auto [next, pays] = seen(status[place[k]], touch.is_head, takes);
                    status[place[k]] = next;
                    if (pays >= 0) m_payments.push_back(2 * touch.star + pays);
                }
                std::string reduced;
                for (const std::size_t p : kept) reduced.push_back(status[p]);
                const auto to = after.emplace(reduced, static_cast<std::int32_t>(after.size())).first->second;
                const auto last = static_cast<std::int32_t>(m_payments.size());
                m_steps[i].transitions.push_back({from, to, takes, first, last});
            }
        }
        m_steps[i].states = static_cast<std::int32_t>(after.size());
        if (m_steps[i].states > most_states) {
            m_is_narrow = false;
            return;
        }
        std::vector<std::int32_t> still_live;
        for (const std::size_t p : kept) still_live.push_back(live[p]);
        live.swap(still_live);
        states.swap(after);
    }
}

double SubsetSweep::payment(const Transition& t, const SubsetPrices& prices) const {
    double sum = 0.0;
    for (std::int32_t p = t.first_payment; p < t.last_payment; ++p) {
        const std::int32_t which = m_payments[p];
        sum += which % 2 ? prices.entering[which / 2] : prices.leaving[which / 2];
    }
    return sum;
}

SubsetSweep::Relaxation SubsetSweep::relax(const SubsetPrices& prices, double price_of_weight) const {
    Relaxation result;
    result.price_of_weight = price_of_weight;
    result.rest.resize(m_nodes + 1);
    result.rest[m_nodes].assign(1, 0.0);
    std::vector<std::vector<const Transition*>> best(m_nodes);
    for (std::int32_t i = m_nodes; i-- > 0;) {
        const std::size_t states = i == 0 ? 1 : m_steps[i - 1].states;
        result.rest[i].assign(states, infinity);
        best[i].assign(states, nullptr);
        const double price = prices.price[i] + price_of_weight * prices.weight[i];
        for (const Transition& t : m_steps[i].transitions) {
            const double value = payment(t, prices) + (t.takes ? price : 0.0) + result.rest[i + 1][t.to];
            if (best[i][t.from] == nullptr || value < result.rest[i][t.from]) {
                result.rest[i][t.from] = value;
                best[i][t.from] = &t;
            }
        }
    }
    result.chosen.resize(m_nodes);
    for (std::int32_t i = 0, state = 0; i < m_nodes; ++i) {
        const Transition& t = *best[i][state];
        result.chosen[i] = t.takes;
        result.cost += payment(t, prices) + (t.takes ? prices.price[i] : 0.0);
        result.weight += t.takes ? prices.weight[i] : 0.0;
        state = t.to;
    }
    return result;
}

// Forward labelling: per state the subsets that no other one beats in both weight and cost.
class SubsetSweep::Labelling {
public:
    Labelling(const SubsetSweep& sweep, const SubsetPrices& prices, const Relaxation& relaxation,
              double capacity, double enough)
        : m_sweep(sweep),
          m_prices(prices),
          m_relaxation(relaxation),
          m_capacity(capacity),
          m_enough(enough) {}

    // If some subset is cheaper than `enough`, `subset` becomes the cheapest found. Beyond
    // `most_labels`, labels are joined, which keeps the bound, or the least promising ones are dropped, which
    // keeps every subset within the limit.
    void run(std::int32_t most_labels, bool joins, Subset& subset);

private:
    struct Label {
        double weight, cost;
        std::int32_t history;  // in m_history
    };
    struct Taken {
        std::int32_t before;  // in m_history
        std::int32_t node;
    };

    void extend(std::int32_t step);
    void join(std::vector<Label>& labels, std::size_t most);
    void drop(std::vector<Label>& labels, std::size_t most);

    const SubsetSweep& m_sweep;
    const SubsetPrices& m_prices;
    const Relaxation& m_relaxation;
    double m_capacity, m_enough;
    std::vector<std::vector<Label>> m_labels;
    std::vector<Taken> m_history;
    std::vector<double> m_gaps, m_totals;
};

void SubsetSweep::Labelling::run(std::int32_t most_labels, bool joins, Subset& subset) {
    m_labels.assign(1, {{0.0, 0.0, -1}});
    for (std::int32_t i = 0; i < m_sweep.m_nodes; ++i) {
        extend(i);
        const std::size_t most = std::max<std::size_t>(most_labels / m_labels.size(), 4);
        for (auto& labels : m_labels) {
            if (labels.size() <= most) continue;
            if (joins) {
                join(labels, most);
            } else {
                drop(labels, most);
            }
        }
    }
    if (m_labels.front().empty()) return;
    const Label& best = m_labels.front().back();  // labels are sorted, the cheapest is the heaviest
    if (!(best.cost < m_enough)) return;
    subset.lower_bound = best.cost;
    subset.chosen.assign(m_sweep.m_nodes, 0);
    for (std::int32_t h = best.history; h >= 0; h = m_history[h].before) subset.chosen[m_history[h].node] = 1;
}

void SubsetSweep::Labelling::extend(std::int32_t step) {
    std::vector<std::vector<Label>> after(m_sweep.m_steps[step].states);
    const double price_of_weight = m_relaxation.price_of_weight;
    const auto& rest = m_relaxation.rest[step + 1];
    for (const Transition& t : m_sweep.m_steps[step].transitions) {
        const double weight = t.takes ? m_prices.weight[step] : 0.0;
        const double cost = m_sweep.payment(t, m_prices) + (t.takes ? m_prices.price[step] : 0.0);
        const double hopeless = m_enough - rest[t.to] + price_of_weight * m_capacity;
        for (const Label& label : m_labels[t.from]) {
            const Label next{label.weight + weight, label.cost + cost, label.history};
            if (next.weight > m_capacity) break;
            if (!(next.cost + price_of_weight * next.weight < hopeless)) continue;
            after[t.to].push_back(next);
            if (t.takes) after[t.to].back().history = -3 - label.history;  // to be recorded if it stays
        }
    }
    for (auto& labels : after) {
        std::sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) {
            return a.weight < b.weight || (a.weight == b.weight && a.cost < b.cost);
        });
        std::size_t count = 0;
        for (const Label& label : labels)
            if (count == 0 || label.cost < labels[count - 1].cost) labels[count++] = label;
        labels.resize(count);
    }
    for (auto& labels : after) {
        for (Label& label : labels) {
            if (label.history > -2) continue;
            m_history.push_back({-3 - label.history, step});
            label.history = static_cast<std::int32_t>(m_history.size()) - 1;
        }
    }
    m_labels.swap(after);
}

// Joins neighbours whose weights are closest into one as light as the first and as cheap as the second.
void SubsetSweep::Labelling::join(std::vector<Label>& labels, std::size_t most) {
    m_gaps.clear();
    for (std::size_t i = 1; i < labels.size(); ++i) m_gaps.push_back(labels[i].weight - labels[i - 1].weight);
    const auto threshold = m_gaps.begin() + static_cast<std::ptrdiff_t>(labels.size() - most);
    std::nth_element(m_gaps.begin(), threshold, m_gaps.end());
    std::size_t count = 0;
    for (std::size_t i = 0; i < labels.size(); ++i, ++count) {
        labels[count] = labels[i];
        if (i + 1 < labels.size() && labels[i + 1].weight - labels[i].weight <= *threshold) {
            ++i;
            labels[count].cost = labels[i].cost;
            labels[count].history = labels[i].history;
        }
    }
    labels.resize(count);
}

// Keeps the labels of one state that cost least, weight's price included.
void SubsetSweep::Labelling::drop(std::vector<Label>& labels, std::size_t most) {
    const auto total = [&](const Label& label) {
        return label.cost + m_relaxation.price_of_weight * label.weight;
    };
    m_totals.clear();
    for (const Label& label : labels) m_totals.push_back(total(label));
    const auto last = m_totals.begin() + static_cast<std::ptrdiff_t>(most - 1);
    std::nth_element(m_totals.begin(), last, m_totals.end());
    labels.erase(std::remove_if(labels.begin(), labels.end(),
                                [&, worst = *last](const Label& label) { return total(label) > worst; }),
                 labels.end());
}

Subset SubsetSweep::cheapest(const SubsetPrices& prices, std::int32_t most_labels) const {
    if (!m_is_narrow) throw std::logic_error("the sweep is too wide");
    check(prices, m_nodes, m_stars);
    const double capacity = prices.capacity * (1 + rounding);
    Subset best{0.0, std::vector<std::uint8_t>(m_nodes, 0)};
    // A price of weight after the other, each where the last subset that fits and the last one that does not
    // cost the same (Handler and Zang, 1980): the best price is the one that proves most.
    std::pair<double, double> light{0.0, 0.0};  // weight and cost
    Relaxation relaxation = relax(prices, 0.0);
    if (relaxation.weight <= capacity) return {relaxation.value(), std::move(relaxation.chosen)};
    std::pair<double, double> heavy{relaxation.weight, relaxation.cost};
    double scale = std::abs(relaxation.value());
    for (int i = 0; i < relaxations; ++i) {
        const double price = (light.second - heavy.second) / (heavy.first - light.first);
        if (!(price > 0)) break;
        Relaxation next = relax(prices, price);
        const bool is_line = next.value() >= (heavy.second + price * heavy.first) - rounding * scale;
        if (next.weight <= capacity) {
            light = {next.weight, next.cost};
            if (next.cost < best.lower_bound) best = {next.cost, next.chosen};
        } else {
            heavy = {next.weight, next.cost};
        }
        relaxation = std::move(next);
        if (is_line) break;
    }
    const auto label = [&](std::int32_t most, bool joins) {
        const double enough = best.lower_bound - rounding * scale;
        Labelling(*this, prices, relaxation, capacity, enough).run(most, joins, best);
    };
    label(std::min(beam_labels, most_labels), false);  // the better a subset is known, the fewer labels stay
    label(most_labels, true);
    best.lower_bound -= rounding * scale;  // by which labels were dropped too early
    return best;
}

}  // namespace ov_autoplace
