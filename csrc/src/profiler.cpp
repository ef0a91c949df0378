#include "ov_autoplace/profiler.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <openvino/core/graph_util.hpp>
#include <openvino/runtime/properties.hpp>
#include <thread>

#include "ov_autoplace/input_data.hpp"

namespace ov_autoplace {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
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

// The op that runs submodels on lanes, if the model has one.
std::shared_ptr<ov::Node> lane_op_of(const ov::Model& model) {
    for (const auto& op : model.get_ops()) {
        const auto& type = op->get_type_info();
        if (std::string(type.name) == "Schedule" && std::string(type.version_id) == "autoplace") return op;
    }
    return nullptr;
}

// Puts a Constant, which is all that `weights` holds, in the place of what stands for it in a model on lanes:
// the op's last input.
void give_weights(const ov::Model& model, const ov::Model& weights) {
    if (const auto op = lane_op_of(model)) {
        const auto stand_in = op->get_input_node_shared_ptr(op->get_input_size() - 1);
        ov::replace_node(stand_in, weights.get_results().at(0)->get_input_node_shared_ptr(0));
    }
}

constexpr std::size_t kMostTimed = 3;  // of a call that comes often
constexpr std::size_t kMostRepeats = 100'000;

// Fills the tensor of each input, in their order.
void fill_inputs(const ov::Model& model, const Executable::Inputs& inputs, std::mt19937_64& generator,
                 const std::function<ov::Tensor(std::size_t)>& tensor_of) {
    const auto& parameters = model.get_parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const std::string& name = parameters[i]->get_friendly_name();
        const auto high = inputs.high.find(name);
        try {
            ov::Tensor tensor = tensor_of(i);
            fill_tensor(tensor, high == inputs.high.end() ? Executable::kDefaultInputHigh : high->second,
                        generator);
        } catch (const std::invalid_argument& error) {
            throw ProfilerError("input '" + name + "' " + error.what());
        }
    }
}

void fill_inputs(const ov::Model& model, const Executable::Inputs& inputs,
                 const std::function<ov::Tensor(std::size_t)>& tensor_of) {
    for (const auto& parameter : model.get_parameters()) {
        if (parameter->get_output_partial_shape(0).is_dynamic()) {
            throw ProfilerError("input '" + parameter->get_friendly_name() + "' has the dynamic shape " +
                                parameter->get_output_partial_shape(0).to_string() +
                                "; give the model static shapes before it is timed");
        }
    }
    std::mt19937_64 generator(inputs.seed);
    fill_inputs(model, inputs, generator, tensor_of);
}

// The shape of an input in a call, and whether it grows.
ov::Shape shape_in(const Executable::Call& call, const ov::op::v0::Parameter& parameter) {
    const auto given = call.shapes.find(parameter.get_friendly_name());
    if (given != call.shapes.end()) return ov::Shape(given->second);
    if (parameter.get_output_partial_shape(0).is_static()) return parameter.get_output_shape(0);
    throw ProfilerError("a call gives no shape for the input '" + parameter.get_friendly_name() + "'");
}

std::shared_ptr<const Executable::Calls> calls_of(const ov::Model& model, const Executable::Inputs& inputs) {
    if (inputs.calls.empty()) return nullptr;
    auto calls = std::make_shared<Executable::Calls>();
    std::mt19937_64 generator(inputs.seed);
    for (const Executable::Call& call : inputs.calls) {
        Executable::CallData data;
        if (!(call.times > 0 && call.times <= kMostRepeats)) {
            throw std::invalid_argument("a call comes more than 0 and at most 100000 times");
        }
        data.times = call.times;
        data.repeats = std::max<std::size_t>(1, static_cast<std::size_t>(std::llround(call.times)));
        for (const auto& parameter : model.get_parameters()) {
            ov::Shape shape = shape_in(call, *parameter);
            const bool grows = call.growing.count(parameter->get_friendly_name()) != 0;
            if (grows && shape.size() < 2) throw std::invalid_argument("a vector has no dimension to grow");
            if (grows) shape[1] += data.repeats - 1;
            data.grows.push_back(grows);
            data.tensors.emplace_back(parameter->get_element_type(), shape);
        }
        fill_inputs(model, inputs, generator, [&](std::size_t i) { return data.tensors[i]; });
        calls->push_back(std::move(data));
    }
    return calls;
}

}  // namespace

void Executable::Request::give(const CallData& call, std::size_t repeat) {
    for (std::size_t i = 0; i < call.tensors.size(); ++i) {
        const ov::Tensor& whole = call.tensors[i];
        if (!call.grows[i]) {
            m_request.set_input_tensor(i, whole);
            continue;
        }
        ov::Shape shape = whole.get_shape();
        shape[1] -= call.repeats - 1 - repeat;
        m_request.set_input_tensor(i, ov::Tensor(whole.get_element_type(), shape, whole.data()));
    }
}

void Executable::Request::infer() {
    forget();
    if (!m_calls) return m_request.infer();
    for (const CallData& call : *m_calls) {
        for (std::size_t repeat = 0; repeat < call.repeats; ++repeat) {
            give(call, repeat);
            m_request.infer();
        }
    }
}

void Executable::Request::start() {
    forget();
    if (!m_calls) return m_request.start_async();
    for (const CallData& call : *m_calls) {
        const bool is_last = &call == &m_calls->back();
        for (std::size_t repeat = 0; repeat < call.repeats; ++repeat) {
            give(call, repeat);
            if (is_last && repeat + 1 == call.repeats) return m_request.start_async();
            m_request.infer();
        }
    }
}

double Executable::Request::timed() {
    forget();
    double total = 0;
    for (const CallData& call : *m_calls) {
        const std::size_t repeats = std::min(call.repeats, kMostTimed);
        double seconds = 0;
        for (std::size_t repeat = 0; repeat < repeats; ++repeat) {
            give(call, repeat);
            const auto start = Clock::now();
            m_request.infer();
            seconds += seconds_since(start);
        }
        total += call.times * seconds / static_cast<double>(repeats);
    }
    return total;
}

Executable::Executable(const ov::Model& model, ov::CompiledModel compiled, const Inputs& inputs,
                       double compile_seconds)
    : m_compiled(std::move(compiled)), m_compile_seconds(compile_seconds) {
    m_request = m_compiled.create_infer_request();
    m_calls = calls_of(model, inputs);
    if (!m_calls) {
        fill_inputs(model, inputs, [this](std::size_t i) { return m_request.get_input_tensor(i); });
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
        for (std::size_t input = 0; !m_calls && input < m_compiled.inputs().size(); ++input) {
            ov::Tensor tensor = request.get_input_tensor(input);
            m_request.get_input_tensor(input).copy_to(tensor);
        }
        m_more_requests.push_back(std::move(request));
    }
    return Request(i == 0 ? m_request : m_more_requests[i - 1], m_has_state, m_calls);
}

double Executable::sample(std::size_t inferences, bool asynchronous) {
    const auto locked = lock();
    return guarded([&] {
        Request own = request(0);
        m_has_run = false;
        if (m_calls) {
            double total = 0;
            for (std::size_t i = 0; i < inferences; ++i) total += own.timed();
            m_has_run = true;
            return total / static_cast<double>(inferences);
        }
        const auto start = Clock::now();
        for (std::size_t i = 0; i < inferences; ++i) {
            if (asynchronous) {
                own.start();
                own.request().wait();
            } else {
                own.infer();
            }
        }
        const double seconds = seconds_since(start);
        m_has_run = true;
        return seconds / static_cast<double>(inferences);
    });
}

double Executable::sample_after_pauses(std::size_t inferences, double pause_seconds) {
    const auto locked = lock();
    return guarded([&] {
        const std::chrono::duration<double> pause(pause_seconds);
        Request own = request(0);
        double seconds = 0;
        for (std::size_t i = 0; i < inferences; ++i) {
            std::this_thread::sleep_for(pause);
            if (m_calls) {
                seconds += own.timed();
                continue;
            }
            const auto start = Clock::now();
            own.infer();
            seconds += seconds_since(start);
        }
        return seconds / static_cast<double>(inferences);
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

void Executable::save_outputs(const std::string& path, bool anew) {
    if (anew || !m_has_run) {
        sample(1, false);
    }
    const auto locked = lock();
    guarded([&] {
        Request own = request(0);
        std::vector<ov::Tensor> outputs;
        for (std::size_t i = 0; i < m_compiled.outputs().size(); ++i) {
            outputs.push_back(own.request().get_output_tensor(i));
        }
        ov_autoplace::save_outputs(outputs, path);
    });
}

RaceResult race(const std::vector<std::shared_ptr<Executable>>& executables, const RaceOptions& options,
                const SampleOptions& sampling, const RaceCheckpoint& checkpoint,
                volatile std::int64_t* current) {
    constexpr std::size_t kTrials = 3;
    constexpr double kMostSampleSeconds = 60.0, kMostInferences = 1e9;
    const double least = sampling.min_seconds, pause = sampling.pause_seconds;
    if (!(least >= 0 && least <= kMostSampleSeconds)) {
        throw std::invalid_argument("a sample of a race must last from 0 to 60 seconds");
    }
    if (!(pause >= 0 && pause <= kMostSampleSeconds)) {
        throw std::invalid_argument("a pause of a race must last from 0 to 60 seconds");
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
            const std::vector<double> trials =
                executable.run(kTrials, executable.has_run() ? 0 : 1, false, 1, {});
            const double shortest = *std::min_element(trials.begin(), trials.end());
            inferences[candidate] =
                static_cast<std::size_t>(std::clamp(std::ceil(least / shortest), 1.0, kMostInferences));
        }
        if (pause > 0) {
            return executable.sample_after_pauses(kPausedInferences, pause);
        }
        return executable.run(1, 0, false, inferences[candidate], {}).front();
    };
    return race(executables.size(), sampler, options, checkpoint);
}

Profiler::Profiler(const std::vector<std::pair<std::string, std::string>>& plugins,
                   const std::map<std::string, StringMap>& device_properties)
    : m_plugins(plugins) {
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

void Profiler::add_extension(const std::string& path) {
    guarded([&] {
        if (m_extensions.count(path) != 0) {
            return;
        }
        m_core.add_extension(path);
        m_extensions.insert(path);
        // Its ops compile models on a Core of the library's own, which knows no registered devices.
        using Register = int (*)(const char* name, const char* library);
        void* const library = dlopen(path.c_str(), RTLD_NOW);
        const auto tell = library == nullptr
                              ? nullptr
                              : reinterpret_cast<Register>(dlsym(library, "ov_autoplace_register_plugin"));
        if (tell == nullptr) {
            return;
        }
        m_lane_profile = reinterpret_cast<Executable::LaneProfile>(dlsym(library, "ov_autoplace_profile"));
        for (const auto& [name, plugin] : m_plugins) {
            if (tell(name.c_str(), plugin.c_str()) != 0) {
                throw ProfilerError("the library at " + path + " cannot register the device " + name);
            }
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
                                              const Executable::Inputs& inputs,
                                              const std::string& weights_path) {
    return guarded([&] {
        const auto model = m_core.read_model(xml_path);
        if (!weights_path.empty()) {
            give_weights(*model, *m_core.read_model(weights_path));
        }
        if (affinities != nullptr) {
            set_affinities(*model, *affinities);
        }
        const auto lane_op = m_lane_profile == nullptr ? nullptr : lane_op_of(*model);
        if (lane_op) {
            // What is known of its runs is kept by name: no other one has this one here.
            lane_op->set_friendly_name(lane_op->get_friendly_name() + " (profiled " +
                                       std::to_string(++m_lane_ops) + ")");
        }
        const auto start = Clock::now();
        ov::CompiledModel compiled = m_core.compile_model(model, device, config_for(device, properties));
        auto executable =
            std::make_shared<Executable>(*model, std::move(compiled), inputs, seconds_since(start));
        if (lane_op) {
            executable->ask_about_lanes(lane_op->get_friendly_name(), m_lane_profile);
        }
        return executable;
    });
}

std::vector<double> Profiler::save_op_by_op(const std::string& xml_path, const std::string& path,
                                            const Executable::Inputs& inputs, const OpByOp& how,
                                            double smallest, const Checkpoint& checkpoint) {
    return guarded([&] {
        const auto model = m_core.read_model(xml_path);
        std::vector<ov::Tensor> given;
        fill_inputs(*model, inputs, [&](std::size_t i) {
            const auto& input = model->get_parameters()[i];
            given.emplace_back(input->get_element_type(), input->get_output_shape(0));
            return given.back();
        });
        const auto runs = run_op_by_op(m_core, *model, given, how, checkpoint);
        ov_autoplace::save_outputs(runs.front(), path);
        std::vector<double> most(runs.front().size(), 0.0);
        const std::string disturbed = path + ".disturbed";
        for (std::size_t run = 1; run < runs.size(); ++run) {
            ov_autoplace::save_outputs(runs[run], disturbed);
            const auto found = output_differences(disturbed, path, smallest);
            std::remove(disturbed.c_str());
            for (std::size_t i = 0; i < most.size(); ++i) {
                most[i] = std::max(most[i], found[i]);
            }
        }
        return most;
    });
}

}  // namespace ov_autoplace
