#include "ov_autoplace/profiler.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <openvino/runtime/properties.hpp>
#include <system_error>
#include <unordered_map>

#include "ov_autoplace/input_data.hpp"

namespace ov_autoplace {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Runs `action` and gives whatever OpenVINO throws one type. Its own classes cannot be relied on here:
// plugins are loaded at run time and some throw types of their own.
template <typename Action>
auto guarded(Action&& action) {
    try {
        return action();
    } catch (const ProfilerError&) {
        throw;
    } catch (const std::exception& error) {
        throw ProfilerError(error.what());
    }
}

bool is_hetero(const std::string& device) { return device.compare(0, 6, "HETERO") == 0; }

void set_affinities(ov::Model& model, const StringMap& affinities) {
    for (const auto& op : model.get_ordered_ops()) {
        const auto found = affinities.find(op->get_friendly_name());
        if (found == affinities.end()) {
            throw ProfilerError("op '" + op->get_friendly_name() + "' (" + op->get_type_name() +
                                ") has no affinity; HETERO needs one for every op");
        }
        op->get_rt_info()["affinity"] = found->second;
    }
}

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

Executable::Executable(const ov::Model& model, ov::CompiledModel compiled, const Inputs& inputs,
                       double compile_seconds)
    : m_compiled(std::move(compiled)), m_compile_seconds(compile_seconds) {
    const auto& parameters = model.get_parameters();
    std::mt19937_64 generator(inputs.seed);
    m_request = m_compiled.create_infer_request();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const std::string& name = parameters[i]->get_friendly_name();
        if (parameters[i]->get_output_partial_shape(0).is_dynamic()) {
            throw ProfilerError("input '" + name + "' has the dynamic shape " +
                                parameters[i]->get_output_partial_shape(0).to_string() +
                                "; give the model static shapes before it is timed");
        }
        const auto high = inputs.high.find(name);
        try {
            ov::Tensor tensor = m_request.get_input_tensor(i);
            fill_tensor(tensor, high == inputs.high.end() ? kDefaultInputHigh : high->second, generator);
        } catch (const std::invalid_argument& error) {
            throw ProfilerError("input '" + name + "' " + error.what());
        }
    }
    for (const auto& op : model.get_ops()) {
        if (op->get_friendly_name().find(',') != std::string::npos) {
            m_names_with_commas.insert(op->get_friendly_name());
        }
    }
    // Not from query_state(), which AUTO over several devices does not implement.
    m_has_state = !model.get_variables().empty();

    const auto supported = m_compiled.get_property(ov::supported_properties);
    const auto supports = [&](const char* name) {
        return std::find(supported.begin(), supported.end(), name) != supported.end();
    };
    if (supports(ov::execution_devices.name())) {
        m_execution_devices = m_compiled.get_property(ov::execution_devices);
    }
    if (supports(ov::optimal_number_of_infer_requests.name())) {
        m_optimal_requests =
            std::max<std::size_t>(1, m_compiled.get_property(ov::optimal_number_of_infer_requests));
    }
    if (supports("HETERO_NUMBER_OF_SUBMODELS")) {
        m_subgraphs = m_compiled.get_property("HETERO_NUMBER_OF_SUBMODELS").as<std::size_t>();
        m_is_hetero = true;
    }
}

Executable::Request Executable::request(std::size_t i) {
    while (m_more_requests.size() < i) {
        ov::InferRequest request = m_compiled.create_infer_request();
        for (std::size_t input = 0; input < m_compiled.inputs().size(); ++input) {
            ov::Tensor tensor = request.get_input_tensor(input);
            m_request.get_input_tensor(input).copy_to(tensor);
        }
        m_more_requests.push_back(std::move(request));
    }
    return Request(i == 0 ? m_request : m_more_requests[i - 1], m_has_state);
}

double Executable::sample(std::size_t inferences, bool asynchronous) {
    const auto locked = lock();
    return guarded([&] {
        Request own = request(0);
        const auto start = Clock::now();
        for (std::size_t i = 0; i < inferences; ++i) {
            if (asynchronous) {
                own.start();
                own.request().wait();
            } else {
                own.infer();
            }
        }
        return seconds_since(start) / static_cast<double>(inferences);
    });
}

std::vector<double> Executable::run(std::size_t samples, std::size_t warmup, bool asynchronous,
                                    std::size_t inferences, const Checkpoint& checkpoint) {
    std::vector<double> result;  // grows with the work done, however many samples are asked for
    CheckpointTimer timer;
    const auto check = [&] {
        if (checkpoint && timer.due()) {
            checkpoint();
        }
    };
    for (std::size_t i = 0; i < warmup; ++i) {
        sample(1, asynchronous);
        check();
    }
    while (result.size() < samples) {
        result.push_back(sample(inferences, asynchronous));
        check();
    }
    return result;
}

std::vector<NodeTime> Executable::node_times() {
    const auto locked = lock();
    return guarded([&] {
        const auto described = describe_nodes(*m_compiled.get_runtime_model(), m_names_with_commas);
        std::vector<NodeTime> result;
        for (const ov::ProfilingInfo& info : m_request.get_profiling_info()) {
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
    });
}

RaceResult race(const std::vector<std::shared_ptr<Executable>>& executables, const RaceOptions& options,
                double min_sample_seconds, const RaceCheckpoint& checkpoint, volatile std::int64_t* current) {
    constexpr std::size_t kTrials = 3;
    constexpr double kMostSampleSeconds = 60.0, kMostInferences = 1e9;
    if (!(min_sample_seconds >= 0 && min_sample_seconds <= kMostSampleSeconds)) {
        throw std::invalid_argument("a sample of a race must last from 0 to 60 seconds");
    }
    for (std::size_t candidate = 0; candidate < executables.size(); ++candidate) {
        if (executables[candidate] == nullptr) {
            throw std::invalid_argument("candidate " + std::to_string(candidate) + " of the race is None");
        }
    }
    std::vector<std::size_t> inferences(executables.size(), 0);
    const auto sampler = [&](std::size_t candidate) {
        Executable& executable = *executables[candidate];
        if (current != nullptr) {
            *current = static_cast<std::int64_t>(candidate);
        }
        if (inferences[candidate] == 0) {
            const std::vector<double> trials = executable.run(kTrials, 1, false, 1, {});
            const double shortest = *std::min_element(trials.begin(), trials.end());
            inferences[candidate] = static_cast<std::size_t>(
                std::clamp(std::ceil(min_sample_seconds / shortest), 1.0, kMostInferences));
        }
        return executable.run(1, 0, false, inferences[candidate], {}).front();
    };
    return race(executables.size(), sampler, options, checkpoint);
}

Profiler::Profiler(const std::vector<std::pair<std::string, std::string>>& plugins,
                   const std::map<std::string, StringMap>& device_properties) {
    guarded([&] {
        for (const auto& [name, library] : plugins) {
            const auto known = m_core.get_available_devices();
            if (std::find(known.begin(), known.end(), name) == known.end()) {
                m_core.register_plugin(library, name);
            }
        }
        for (const auto& [device, properties] : device_properties) {
            ov::AnyMap config(properties.begin(), properties.end());
            m_core.set_property(device, config);
            m_device_properties.emplace(device, std::move(config));
        }
    });
}

ov::AnyMap Profiler::config_for(const std::string& device, const StringMap& properties) const {
    ov::AnyMap config(properties.begin(), properties.end());
    // HETERO sets EXCLUSIVE_ASYNC_REQUESTS on its submodels, which puts them on a shared executor where
    // thread counts and streams have no effect, unless the compile call itself carries the device's settings.
    if (is_hetero(device) && !m_device_properties.empty() &&
        config.count(ov::device::properties.name()) == 0) {
        ov::AnyMap by_device(m_device_properties.begin(), m_device_properties.end());
        config.emplace(ov::device::properties.name(), std::move(by_device));
    }
    return config;
}

std::shared_ptr<Executable> Profiler::compile(const std::string& xml_path, const std::string& device,
                                              const StringMap& properties, const StringMap* affinities,
                                              const Executable::Inputs& inputs) {
    return guarded([&] {
        const auto model = m_core.read_model(xml_path);
        if (affinities != nullptr) {
            set_affinities(*model, *affinities);
        }
        const auto start = Clock::now();
        ov::CompiledModel compiled = m_core.compile_model(model, device, config_for(device, properties));
        return std::make_shared<Executable>(*model, std::move(compiled), inputs, seconds_since(start));
    });
}

}  // namespace ov_autoplace
