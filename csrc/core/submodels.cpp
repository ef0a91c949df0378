#include "ov_autoplace/submodels.hpp"

#include <algorithm>
#include <cmath>

namespace ov_autoplace {
namespace {

constexpr std::uint64_t no_class = ~std::uint64_t{0};  // of what is in no submodel

// The finaliser of MurmurHash3 (public domain) on both numbers: every bit of them changes half of the result.
std::uint64_t mixed(std::uint64_t seed, std::uint64_t value) {
    std::uint64_t x = (seed ^ value) * 0x9e3779b97f4a7c15ULL + 0x2545f4914f6cdd1dULL;
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    return x ^ (x >> 33);
}

// CSR of the distinct second ends of pairs by their first ends.
void distinct_rows(std::int32_t rows, const std::vector<std::pair<std::int32_t, std::int32_t>>& pairs,
                   std::vector<std::int32_t>& offsets, std::vector<std::int32_t>& values) {
    std::vector<std::pair<std::int32_t, std::int32_t>> sorted = pairs;
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    offsets.assign(rows + 1, 0);
    values.clear();
    for (const auto& [row, value] : sorted) {
        ++offsets[row + 1];
        values.push_back(value);
    }
    for (std::int32_t row = 0; row < rows; ++row) offsets[row + 1] += offsets[row];
}

}  // namespace

SubmodelCutter::SubmodelCutter(const PieceGraph& graph)
    : m_graph(graph),
      m_submodel_of(graph.pieces),
      m_class(graph.pieces),
      m_relatives(graph.pieces),
      m_bit(graph.pieces),
      m_on_lane(graph.lanes) {
    std::vector<std::pair<std::int32_t, std::int32_t>> forth, back;
    for (std::size_t t = 0; t < graph.tensor_producer.size(); ++t) {
        for (std::int32_t e = graph.tensor_offsets[t]; e < graph.tensor_offsets[t + 1]; ++e) {
            forth.emplace_back(graph.tensor_producer[t], graph.tensor_consumers[e]);
            back.emplace_back(graph.tensor_consumers[e], graph.tensor_producer[t]);
        }
    }
    distinct_rows(graph.pieces, forth, m_out_offsets, m_out_pieces);
    distinct_rows(graph.pieces, back, m_in_offsets, m_in_pieces);
}

// Mixes into the class of every piece which pieces of other lanes are above it (or below it). It is enough to
// look at pieces whose tensors change the lane: who waits for another piece of a lane waits for one of them,
// or is on that lane.
void SubmodelCutter::mark_relatives(const std::int32_t* lane, bool ancestors) {
    const auto& towards = ancestors ? m_out_offsets : m_in_offsets;
    const auto& towards_pieces = ancestors ? m_out_pieces : m_in_pieces;
    const auto& from = ancestors ? m_in_offsets : m_out_offsets;
    const auto& from_pieces = ancestors ? m_in_pieces : m_out_pieces;
    m_marked.clear();
    for (std::int32_t p = 0; p < m_graph.pieces; ++p) {
        for (std::int32_t e = towards[p]; e < towards[p + 1]; ++e) {
            if (lane[towards_pieces[e]] != lane[p]) {
                m_marked.push_back(p);
                break;
            }
        }
    }
    constexpr std::size_t word = 64;
    for (std::size_t begin = 0; begin < m_marked.size(); begin += word) {
        const std::size_t end = std::min(begin + word, m_marked.size());
        std::fill(m_on_lane.begin(), m_on_lane.end(), 0);
        for (std::size_t i = begin; i < end; ++i) {
            m_bit[m_marked[i]] = std::uint64_t{1} << (i - begin);
            m_on_lane[lane[m_marked[i]]] |= m_bit[m_marked[i]];
        }
        // The same bits stand for other pieces in the next word.
        const std::uint64_t seed = mixed(0, 2 * begin + ancestors + 1);
        // Who is before the first of these is below none of them, and who is behind the last above none.
        const std::int32_t first = ancestors ? m_marked[begin] : 0;
        const std::int32_t last = ancestors ? m_graph.pieces - 1 : m_marked[end - 1];
        for (std::int32_t i = first; i <= last; ++i) {
            const std::int32_t p = ancestors ? i : last - (i - first);
            std::uint64_t relatives = 0;
            for (std::int32_t e = from[p]; e < from[p + 1]; ++e) {
                relatives |= m_relatives[from_pieces[e]] | m_bit[from_pieces[e]];
            }
            m_relatives[p] = relatives;
            relatives &= ~m_on_lane[lane[p]];
            if (relatives) m_class[p] += mixed(seed, relatives);
        }
        for (std::size_t i = begin; i < end; ++i) m_bit[m_marked[i]] = 0;
        std::fill(m_relatives.begin() + first, m_relatives.begin() + last + 1, 0);
    }
}

// Numbers different keys by first appearance, into `numbers`; returns how many they are.
std::int32_t SubmodelCutter::number(const std::vector<std::uint64_t>& keys,
                                    std::vector<std::int32_t>& numbers) {
    constexpr std::int32_t empty = -1;
    std::size_t slots = 64;
    while (slots < 2 * keys.size()) slots *= 2;
    m_key.resize(slots);
    m_slot.assign(slots, empty);
    std::int32_t count = 0;
    numbers.resize(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (keys[i] == no_class) {
            numbers[i] = empty;
            continue;
        }
        std::size_t slot = mixed(0, keys[i]) & (slots - 1);
        while (m_slot[slot] != empty && m_key[slot] != keys[i]) slot = (slot + 1) & (slots - 1);
        if (m_slot[slot] == empty) {
            m_slot[slot] = count++;
            m_key[slot] = keys[i];
        }
        numbers[i] = m_slot[slot];
    }
    return count;
}

bool SubmodelCutter::cut(const std::int32_t* lane, SubmodelGraph& result) {
    for (std::int32_t p = 0; p < m_graph.pieces; ++p) {
        if (std::isinf(m_graph.seconds[static_cast<std::size_t>(p) * m_graph.lanes + lane[p]])) return false;
        m_class[p] = mixed(0, static_cast<std::uint64_t>(lane[p]) + 1);
    }
    mark_relatives(lane, true);
    mark_relatives(lane, false);
    for (std::int32_t p = 0; p < m_graph.pieces; ++p) {
        if (!m_graph.runs[p]) m_class[p] = no_class;
    }
    if (build(lane, result)) return true;
    // Two classes with one number, which 64 bits make all but impossible: then every piece is a submodel.
    for (std::int32_t p = 0; p < m_graph.pieces; ++p) {
        if (m_graph.runs[p]) m_class[p] = static_cast<std::uint64_t>(p);
    }
    return build(lane, result);
}

// The submodels that the classes of pieces are; false when they wait for each other in a cycle.
bool SubmodelCutter::build(const std::int32_t* lane, SubmodelGraph& result) {
    const std::int32_t count = number(m_class, m_submodel_of);
    result.lane.assign(count, -1);
    result.work.assign(count, 0.0);
    for (std::int32_t p = 0; p < m_graph.pieces; ++p) {
        const std::int32_t s = m_submodel_of[p];
        if (s < 0) continue;
        if (result.lane[s] < 0) {
            result.lane[s] = lane[p];
            result.work[s] = m_graph.launch_seconds[lane[p]];
        }
        result.work[s] += m_graph.seconds[static_cast<std::size_t>(p) * m_graph.lanes + lane[p]];
    }
    m_arcs.clear();
    for (std::size_t t = 0; t < m_graph.tensor_producer.size(); ++t) {
        const std::int32_t producer = m_graph.tensor_producer[t], source = m_submodel_of[producer];
        for (std::int32_t e = m_graph.tensor_offsets[t]; e < m_graph.tensor_offsets[t + 1]; ++e) {
            const std::int32_t consumer = m_graph.tensor_consumers[e], target = m_submodel_of[consumer];
            if (source == target) continue;
            const bool stays = lane[producer] == lane[consumer];
            const double delay = stays ? 0.0 : m_graph.transfer_seconds(t, lane[producer], lane[consumer]);
            m_arcs.push_back({source, target, delay});
        }
    }
    return connect(result);
}

bool SubmodelCutter::join(const SubmodelGraph& fine, const std::vector<std::int32_t>& joined,
                          std::int32_t count, SubmodelGraph& result) {
    result.lane.assign(count, -1);
    result.work.assign(count, 0.0);
    for (std::int32_t s = 0; s < fine.size(); ++s) {
        const std::int32_t j = joined[s];
        // One launch for all of them.
        result.work[j] += fine.work[s] - (result.lane[j] < 0 ? 0.0 : m_graph.launch_seconds[fine.lane[s]]);
        result.lane[j] = fine.lane[s];
    }
    m_arcs.clear();
    for (const SubmodelGraph::Arc& arc : fine.arcs) {
        if (joined[arc.source] != joined[arc.target]) {
            m_arcs.push_back({joined[arc.source], joined[arc.target], arc.delay});
        }
    }
    return connect(result);
}

std::int32_t SubmodelCutter::join_by_depth(const SubmodelGraph& fine, std::vector<std::int32_t>& joined) {
    const std::int32_t count = fine.size();
    m_depth_in.assign(count, 0);
    m_depth_out.assign(count, 0);
    const auto hops = [&](const SubmodelGraph::Arc& arc) {
        return fine.lane[arc.source] != fine.lane[arc.target];
    };
    for (std::int32_t i = 0; i < count; ++i) {
        const std::int32_t from = fine.order[i], back = fine.order[count - 1 - i];
        for (std::int32_t a = fine.out_offsets[from]; a < fine.out_offsets[from + 1]; ++a) {
            std::int32_t& depth = m_depth_in[fine.arcs[a].target];
            depth = std::max(depth, m_depth_in[from] + hops(fine.arcs[a]));
        }
        for (std::int32_t a = fine.out_offsets[back]; a < fine.out_offsets[back + 1]; ++a) {
            std::int32_t& depth = m_depth_out[back];
            depth = std::max(depth, m_depth_out[fine.arcs[a].target] + hops(fine.arcs[a]));
        }
    }
    m_depths.resize(count);
    for (std::int32_t s = 0; s < count; ++s) {
        constexpr int bits = 24;  // no way is as long as 2^24 submodels
        m_depths[s] = (static_cast<std::uint64_t>(fine.lane[s]) << (2 * bits)) |
                      (static_cast<std::uint64_t>(m_depth_in[s]) << bits) |
                      static_cast<std::uint64_t>(m_depth_out[s]);
    }
    return number(m_depths, joined);
}

// Arcs of m_arcs without repetitions, by source and by target, and the order of the submodels; false when
// there is none.
bool SubmodelCutter::connect(SubmodelGraph& graph) {
    const std::int32_t count = graph.size();
    graph.out_offsets.assign(count + 1, 0);
    for (const SubmodelGraph::Arc& arc : m_arcs) ++graph.out_offsets[arc.source + 1];
    for (std::int32_t s = 0; s < count; ++s) graph.out_offsets[s + 1] += graph.out_offsets[s];
    m_position.assign(graph.out_offsets.begin(), graph.out_offsets.end() - 1);
    graph.arcs.resize(m_arcs.size());
    for (const SubmodelGraph::Arc& arc : m_arcs) graph.arcs[m_position[arc.source]++] = arc;
    // Of several arcs between two submodels the longest delay holds.
    constexpr std::int32_t none = -1;
    m_stamp.assign(count, none);
    graph.in_offsets.assign(count + 1, 0);
    std::int32_t kept = 0;
    for (std::int32_t s = 0, begin = 0; s < count; ++s) {
        const std::int32_t end = graph.out_offsets[s + 1], first = kept;
        for (std::int32_t a = begin; a < end; ++a) {
            const SubmodelGraph::Arc arc = graph.arcs[a];
            if (m_stamp[arc.target] >= first) {
                double& delay = graph.arcs[m_stamp[arc.target]].delay;
                delay = std::max(delay, arc.delay);
                continue;
            }
            m_stamp[arc.target] = kept;
            ++graph.in_offsets[arc.target + 1];
            graph.arcs[kept++] = arc;
        }
        begin = end;
        graph.out_offsets[s + 1] = kept;
    }
    graph.arcs.resize(kept);
    for (std::int32_t s = 0; s < count; ++s) graph.in_offsets[s + 1] += graph.in_offsets[s];
    m_position.assign(graph.in_offsets.begin(), graph.in_offsets.end() - 1);
    graph.in_arcs.resize(kept);
    for (std::int32_t a = 0; a < kept; ++a) graph.in_arcs[m_position[graph.arcs[a].target]++] = a;

    graph.order.clear();
    m_stamp.assign(count, 0);  // from here on: sources that are in the order already
    for (std::int32_t s = 0; s < count; ++s) {
        if (graph.in_offsets[s] == graph.in_offsets[s + 1]) graph.order.push_back(s);
    }
    for (std::size_t next = 0; next < graph.order.size(); ++next) {
        const std::int32_t s = graph.order[next];
        for (std::int32_t a = graph.out_offsets[s]; a < graph.out_offsets[s + 1]; ++a) {
            const std::int32_t target = graph.arcs[a].target;
            if (++m_stamp[target] == graph.in_offsets[target + 1] - graph.in_offsets[target]) {
                graph.order.push_back(target);
            }
        }
    }
    return graph.order.size() == static_cast<std::size_t>(count);
}

}  // namespace ov_autoplace
