// What a compiled model tells of its last inferences: the times of its nodes, and of submodels on lanes.
#include <charconv>
#include <chrono>
#include <system_error>
#include <unordered_map>

#include "../extension/schedule_profile.hpp"
#include "profiler.hpp"

namespace ov_autoplace {
namespace {

std::vector<std::string> split_at_commas(const std::string& text, const std::set<std::string>& whole = {}) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin < text.size();) {
        std::size_t end = std::min(text.find(',', begin), text.size());
        for (const std::string& name : whole) {
            const std::size_t name_end = begin + name.size();
            const bool ends = name_end == text.size() || (name_end < text.size() && text[name_end] == ',');
            if (ends && name_end > end && text.compare(begin, name.size(), name) == 0) {
                end = name_end;
            }
        }
        if (end > begin) {
            parts.push_back(text.substr(begin, end - begin));
        }
        begin = end + 1;
    }
    return parts;
}

// HETERO reports the nodes of its submodels as "subgraph<N>: <name>", whatever the name is.
std::pair<int, std::string> split_subgraph_prefix(const std::string& name) {
    static const std::string prefix = "subgraph";
    static const std::string separator = ": ";
    int subgraph = 0;
    if (name.compare(0, prefix.size(), prefix) == 0) {
        const char* const end = name.data() + name.size();
        const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, subgraph);
        const auto position = static_cast<std::size_t>(rest - name.data());
        if (error == std::errc() && name.compare(position, separator.size(), separator) == 0) {
            return {subgraph, name.substr(position + separator.size())};
        }
    }
    return {0, name};
}

std::string text_of(const ov::RTMap& info, const std::string& key) {
    const auto found = info.find(key);
    return found == info.end() ? std::string() : found->second.as<std::string>();
}

// What the runtime model tells of each node: everything but how it ran. Plugins list the ops behind a node
// with commas between them; `with_commas` holds the ops of the model whose own names have some.
std::unordered_map<std::string, NodeTime> describe_nodes(const ov::Model& runtime_model,
                                                         const std::set<std::string>& with_commas) {
    std::unordered_map<std::string, NodeTime> result;
    for (const auto& node : runtime_model.get_ordered_ops()) {
        const auto& info = node->get_rt_info();
        NodeTime& described = result[node->get_friendly_name()];
        described.original_names = split_at_commas(text_of(info, "originalLayersNames"), with_commas);
        // Both hold one entry per result.
        const auto layouts = split_at_commas(text_of(info, "outputLayouts"));
        const auto precisions = split_at_commas(text_of(info, "outputPrecisions"));
        described.layout = layouts.empty() ? "" : layouts.front();
        described.precision = precisions.empty() ? "" : precisions.front();
        for (const auto& output : node->outputs()) {
            for (const auto& input : output.get_target_inputs()) {
                described.consumers.push_back(input.get_node()->get_friendly_name());
            }
        }
    }
    return result;
}

const char* status_name(ov::ProfilingInfo::Status status) {
    switch (status) {
        case ov::ProfilingInfo::Status::EXECUTED:
            return "EXECUTED";
        case ov::ProfilingInfo::Status::OPTIMIZED_OUT:
            return "OPTIMIZED_OUT";
        default:
            return "NOT_RUN";
    }
}

}  // namespace

std::string Executable::lane_profile() const {
    if (m_lane_op.empty()) {
        throw ProfilerError("the model does not run on lanes");
    }
    std::string text = profile_of(m_lane_op);
    if (text.empty()) {
        throw ProfilerError("the library of lanes does not know the op " + m_lane_op);
    }
    return text;
}

std::vector<NodeTime> Executable::node_times() {
    const auto described = describe_nodes(*m_compiled.get_runtime_model(), m_names_with_commas);
    std::vector<NodeTime> result;
    for (const ov::ProfilingInfo& info : m_requests.front().request().get_profiling_info()) {
        const auto [subgraph, name] =
            m_is_hetero ? split_subgraph_prefix(info.node_name) : std::pair(0, info.node_name);
        const auto found = described.find(name);
        NodeTime node = found == described.end() ? NodeTime{} : found->second;
        node.name = name;
        node.subgraph = subgraph;
        node.type = info.node_type;
        node.exec_type = info.exec_type;
        node.status = status_name(info.status);
        node.seconds = std::chrono::duration<double>(info.real_time).count();
        result.push_back(std::move(node));
    }
    return result;
}

}  // namespace ov_autoplace
