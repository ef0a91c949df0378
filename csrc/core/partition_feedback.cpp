#include "ov_autoplace/partition_feedback.hpp"

#include <algorithm>

namespace ov_autoplace {

FeedbackSplitter::FeedbackSplitter(const PartitionGraph& graph, std::vector<std::uint8_t>& boundary,
                                   SpanningEdges& spanning)
    : m_graph(graph),
      m_refusing(graph.rules == HeteroRules::refusing),
      m_boundary(boundary),
      m_spanning(spanning),
      m_part(graph.size(), -1),
      m_bit_of_part(graph.size()),
      m_own(graph.size()),
      m_word(graph.size()),
      m_entry(graph.size()),
      m_entered(graph.size()),
      m_questioned(graph.size()),
      m_touched(graph.size() / bits_per_word + 1),
      m_row(graph.size()) {}

bool FeedbackSplitter::split(const std::int32_t* nodes, std::size_t count,
                             const std::vector<std::int32_t>& root,
                             const std::function<bool(std::size_t)>& stop) {
    collect_parts(nodes, count, root);
    bool goes_on = true;
    while (goes_on && !m_now.empty()) {
        for (std::size_t i = 0; goes_on && i < m_now.size(); i += bits_per_word) {
            goes_on = follow(&m_now[i], std::min(m_now.size() - i, bits_per_word), stop);
        }
        m_now.swap(m_later);
        m_later.clear();
        std::sort(m_now.begin(), m_now.end(), [](const Part& a, const Part& b) { return a.first < b.first; });
    }
    for (std::size_t i = 0; i < count; ++i) m_part[nodes[i]] = -1;
    return goes_on;
}

bool FeedbackSplitter::split_once(const std::int32_t* nodes, std::size_t count,
                                  const std::vector<std::int32_t>& root) {
    collect_parts(nodes, count, root);
    bool cuts = false;
    for (std::size_t i = 0; i < m_now.size(); i += bits_per_word) {
        begin(&m_now[i], std::min(m_now.size() - i, bits_per_word));
        mark_feedback();
        decide_all();
        for (const std::int32_t edge : m_cuts) m_boundary[edge] = 1;
        cuts = cuts || !m_cuts.empty();
        end();
    }
    for (std::size_t i = 0; i < count; ++i) m_part[nodes[i]] = -1;
    return cuts;
}

// A single node never depends on itself.
void FeedbackSplitter::collect_parts(const std::int32_t* nodes, std::size_t count,
                                     const std::vector<std::int32_t>& root) {
    m_nodes = nodes;
    m_count = count;
    m_now.clear();
    m_parts = 0;
    for (std::size_t i = 0; i < m_count; ++i) {
        const std::int32_t node = m_nodes[i];
        if (root[node] == node) {
            m_part[node] = m_parts;
            m_now.push_back({m_parts++, node, node});
        } else {
            m_part[node] = m_part[root[node]];
            m_now[m_part[node]].last = node;
        }
    }
    const auto is_single = [](const Part& part) { return part.first == part.last; };
    m_now.erase(std::remove_if(m_now.begin(), m_now.end(), is_single), m_now.end());
}

bool FeedbackSplitter::follow(const Part* parts, std::size_t count,
                              const std::function<bool(std::size_t)>& stop) {
    begin(parts, count);
    mark_feedback();
    bool goes_on = true;
    while (goes_on) {
        decide_all();
        if (m_cuts.empty()) break;
        apply_cuts();
        sweep();
        m_work += m_spanning.take_work();
        goes_on = !stop || !stop(m_work);
        m_work = 0;
    }
    end();
    return goes_on;
}

void FeedbackSplitter::decide_all() {
    m_cuts.clear();
    m_ends.clear();
    for (const std::int32_t node : m_questions) decide(node);
    for (const std::int32_t node : m_questions) m_questioned[node] = 0;
    m_questions.clear();
}

void FeedbackSplitter::begin(const Part* parts, std::size_t count) {
    m_first = parts[0].first;
    m_last = parts[0].last;
    for (std::size_t i = 1; i < count; ++i) {
        m_first = std::min(m_first, parts[i].first);
        m_last = std::max(m_last, parts[i].last);
    }
    const std::int32_t* end = m_nodes + m_count;
    m_window_begin = std::lower_bound(m_nodes, end, m_first) - m_nodes;
    m_window_end = std::upper_bound(m_nodes, end, m_last) - m_nodes;
    for (std::size_t i = 0; i < count; ++i) m_bit_of_part[parts[i].id] = std::uint64_t{1} << i;
    for (std::size_t i = m_window_begin; i < m_window_end; ++i) {
        m_own[m_nodes[i]] = m_bit_of_part[m_part[m_nodes[i]]];
    }
    for (std::size_t i = 0; i < count; ++i) m_bit_of_part[parts[i].id] = 0;
    m_knows_springs = false;
    m_touched_begin = m_touched.size();
    m_touched_end = 0;
}

// One pass down the graph, which finds what feeding() and entry_of() tell. Questioned is where the fed-back
// part of a subgraph begins.
void FeedbackSplitter::mark_feedback() {
    for (std::size_t i = m_window_begin; i < m_window_end; ++i) {
        const std::int32_t node = m_nodes[i], part = m_part[node];
        const std::uint64_t own = m_own[node];
        std::uint64_t word = 0, fed_back_by_all = own;
        Entry entry = none;
        bool entered = false;
        for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
            const std::int32_t source = m_graph.input_sources[e];
            const std::uint64_t above = m_word[source] | (m_boundary[e] ? m_own[source] : 0);
            word |= above;
            if (m_part[source] == part) {
                entry = std::max(entry, m_entry[source]);
                fed_back_by_all &= above;
            } else if (own) {
                entry = std::max(entry, m_graph.is_graph_input(source) ? from_graph_inputs : from_ops);
                entered = true;
            }
        }
        m_word[node] = word;
        m_entry[node] = entry;
        m_entered[node] = entered;
        if (word & own & ~fed_back_by_all) question(node);
    }
}

// The subgraphs of which a boundary leads to a node.
std::uint64_t FeedbackSplitter::feeding(std::int32_t node) const {
    std::uint64_t word = 0;
    for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
        const std::int32_t source = m_graph.input_sources[e];
        word |= m_word[source] | (m_boundary[e] ? m_own[source] : 0);
    }
    return word;
}

// For a node that is not fed back: neither is anything above it in its subgraph, and no boundary of the
// subgraph itself ends there. Cuts elsewhere change nothing of this.
FeedbackSplitter::Entry FeedbackSplitter::entry_of(std::int32_t node) const {
    Entry entry = none;
    for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
        const std::int32_t source = m_graph.input_sources[e];
        const Entry outer = m_graph.is_graph_input(source) ? from_graph_inputs : from_ops;
        entry = std::max(entry, m_part[source] == m_part[node] ? m_entry[source] : outer);
    }
    return entry;
}

// Boundaries are wanted where the fed-back part of a subgraph begins: on an inner edge from a node that is
// not fed back to one that is, if both sides of the detour share something above them in the subgraph: a
// boundary that enters, or an origin.
void FeedbackSplitter::decide(std::int32_t node) {
    if (!is_fed_back(node)) return;
    m_work += m_graph.input_offsets[node + 1] - m_graph.input_offsets[node];
    for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
        const std::int32_t source = m_graph.input_sources[e];
        if (m_boundary[e] || is_fed_back(source) || !is_wanted(e, source, node)) continue;
        m_cuts.push_back(e);
        m_ends.push_back(node);
    }
}

bool FeedbackSplitter::is_wanted(std::int32_t edge, std::int32_t source, std::int32_t node) {
    if (m_refusing) return shares_spring(source, node);
    // Spared is a tensor with one reader whose maker depends on nothing but graph inputs, since cutting it
    // off would make a tiny subgraph.
    const bool spared =
        m_graph.input_is_private[edge] && !m_graph.is_graph_input(source) && m_entry[source] != from_ops;
    // What enters above the source also enters above the node, so it is shared.
    return !spared && (m_entry[source] != none || shares_spring(source, node));
}

// Whether a spring above `source` reaches `node`, which reads it, also by a detour.
bool FeedbackSplitter::shares_spring(std::int32_t source, std::int32_t node) {
    const bool all = is_detour_in(node);
    if (m_graph.is_sidestream[source]) return all;  // there is no other way
    if (!m_knows_springs) find_springs();
    const std::uint64_t* above = springs(source);
    const std::uint64_t* detour = all ? springs(node) : detours(node);
    for (std::size_t w = 0; w < m_words; ++w) {
        if (above[w] & detour[w]) return true;
    }
    return false;
}

void FeedbackSplitter::find_springs() {
    m_knows_springs = true;
    std::size_t found = 0;
    const auto is_spring = [&](std::int32_t node) {
        return m_own[node] && (m_graph.is_spring[node] || (m_refusing && m_entered[node]));
    };
    for (std::size_t i = m_window_begin; i < m_window_end; ++i) found += is_spring(m_nodes[i]);
    m_words = (found + bits_per_word - 1) / bits_per_word;
    const std::size_t rows = m_window_end - m_window_begin;
    m_springs.assign(rows * m_words, 0);
    m_detours.assign(rows * m_words, 0);
    found = 0;
    for (std::size_t row = 0; row < rows; ++row) {
        const std::int32_t node = m_nodes[m_window_begin + row];
        m_row[node] = row;
        m_work += m_words * (m_graph.input_offsets[node + 1] - m_graph.input_offsets[node]);
        for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
            const std::int32_t source = m_graph.input_sources[e];
            if (!is_within(source)) continue;
            const std::uint64_t* above = springs(source);
            const std::uint64_t* detour = m_boundary[e] || is_detour_in(source) ? above : detours(source);
            const bool stays = !m_refusing || m_part[source] == m_part[node];
            for (std::size_t w = 0; w < m_words; ++w) {
                if (stays) springs(node)[w] |= above[w];
                detours(node)[w] |= detour[w] | detours(source)[w];
            }
        }
        if (is_spring(node)) {
            springs(node)[found / bits_per_word] |= std::uint64_t{1} << (found % bits_per_word);
            ++found;
        }
    }
}

// Only now, because all decisions of one round rest on the boundaries at its start.
void FeedbackSplitter::apply_cuts() {
    for (std::size_t i = 0; i < m_cuts.size(); ++i) {
        m_boundary[m_cuts[i]] = 1;
        if (m_knows_springs) touch(m_ends[i]);
        const std::vector<std::int32_t>& nodes = m_spanning.cut(m_cuts[i], m_ends[i]);
        if (!nodes.empty()) move_out(nodes);
    }
}

// Makes a subgraph of its own, to be followed later, of a piece that was cut off.
void FeedbackSplitter::move_out(const std::vector<std::int32_t>& nodes) {
    Part part{m_parts++, nodes[0], nodes[0]};
    for (const std::int32_t node : nodes) {
        part.first = std::min(part.first, node);
        part.last = std::max(part.last, node);
        m_part[node] = part.id;
        m_own[node] = 0;
    }
    if (nodes.size() > 1) m_later.push_back(part);
    for (const std::int32_t node : nodes) {
        for (std::int32_t k = m_graph.output_offsets[node]; k < m_graph.output_offsets[node + 1]; ++k) {
            const std::int32_t reader = m_graph.output_readers[k];
            if (!is_within(reader) || !m_boundary[m_graph.output_edges[k]]) continue;
            touch(reader);
            if (m_part[reader] != part.id) enter(reader);
        }
    }
}

void FeedbackSplitter::enter(std::int32_t node) {
    if (!m_own[node] || m_entered[node]) return;
    m_entered[node] = 1;
    question(node);
    if (m_knows_springs) touch_readers(node);
}

// Brings up to date what changes go down the graph from the touched nodes.
void FeedbackSplitter::sweep() {
    for (std::size_t word = m_touched_begin; word < m_touched_end; ++word) {
        std::size_t bit = 0;  // only ascends, because readers come after what they read
        while (m_touched[word]) {
            while (!(m_touched[word] >> bit & 1)) ++bit;
            m_touched[word] &= ~(std::uint64_t{1} << bit);
            const auto node = static_cast<std::int32_t>(word * bits_per_word + bit);
            m_work += m_graph.input_offsets[node + 1] - m_graph.input_offsets[node];
            const bool feedback_changed = renew_feedback(node);
            const bool detours_changed = m_knows_springs && renew_detours(node);
            if (detours_changed) question(node);
            if (feedback_changed || detours_changed) touch_readers(node);
        }
    }
    m_touched_begin = m_touched.size();
    m_touched_end = 0;
}

bool FeedbackSplitter::renew_feedback(std::int32_t node) {
    const bool was_fed_back = is_fed_back(node);
    const std::uint64_t word = m_word[node] ? feeding(node) : 0;
    if (word == m_word[node]) return false;
    m_word[node] = word;
    if (was_fed_back && !is_fed_back(node)) {
        m_entry[node] = entry_of(node);
        for (std::int32_t k = m_graph.output_offsets[node]; k < m_graph.output_offsets[node + 1]; ++k) {
            if (!m_boundary[m_graph.output_edges[k]]) question(m_graph.output_readers[k]);
        }
    }
    return true;
}

bool FeedbackSplitter::renew_detours(std::int32_t node) {
    std::uint64_t* row = detours(node);
    bool changed = false;
    for (std::int32_t e = m_graph.input_offsets[node]; e < m_graph.input_offsets[node + 1]; ++e) {
        const std::int32_t source = m_graph.input_sources[e];
        if (!is_within(source)) continue;
        const bool all = m_boundary[e] || m_entered[source];
        const std::uint64_t* from = all ? springs(source) : detours(source);
        for (std::size_t w = 0; w < m_words; ++w) {
            changed |= (from[w] & ~row[w]) != 0;
            row[w] |= from[w];
        }
    }
    return changed;
}

void FeedbackSplitter::touch(std::int32_t node) {
    const std::size_t word = node / bits_per_word;
    m_touched[word] |= std::uint64_t{1} << (node % bits_per_word);
    m_touched_begin = std::min(m_touched_begin, word);
    m_touched_end = std::max(m_touched_end, word + 1);
}

void FeedbackSplitter::touch_readers(std::int32_t node) {
    for (std::int32_t k = m_graph.output_offsets[node]; k < m_graph.output_offsets[node + 1]; ++k) {
        if (is_within(m_graph.output_readers[k])) touch(m_graph.output_readers[k]);
    }
}

void FeedbackSplitter::question(std::int32_t node) {
    if (!m_own[node] || m_questioned[node]) return;
    m_questioned[node] = 1;
    m_questions.push_back(node);
}

void FeedbackSplitter::end() {
    for (const std::int32_t node : m_questions) m_questioned[node] = 0;
    m_questions.clear();
    for (std::size_t i = m_window_begin; i < m_window_end; ++i) m_own[m_nodes[i]] = m_word[m_nodes[i]] = 0;
}

}  // namespace ov_autoplace
