#include "profiler.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <openvino/core/graph_util.hpp>
#include <openvino/runtime/properties.hpp>
#include <thread>

#include "../extension/schedule_api.h"
#include "../last_error.hpp"
#include "input_data.hpp"
#include "outputs.hpp"

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
    ov::InferRequest first = m_compiled.create_infer_request();
    m_calls = calls_of(model, inputs);
    if (!m_calls) {
        fill_inputs(model, inputs, [&first](std::size_t i) { return first.get_input_tensor(i); });
    }
    for (const auto& op : model.get_ops()) {
        if (op->get_friendly_name().find(',') != std::string::npos) {
            m_names_with_commas.insert(op->get_friendly_name());
        }
    }
    // Not from query_state(), which AUTO over several devices does not implement.
    m_has_state = !model.get_variables().empty();
    m_requests.emplace_back(std::move(first), m_has_state, m_calls);

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

Executable::Request& Executable::request(std::size_t i) {
    while (m_requests.size() <= i) {
        ov::InferRequest request = m_compiled.create_infer_request();
        for (std::size_t input = 0; !m_calls && input < m_compiled.inputs().size(); ++input) {
            ov::Tensor tensor = request.get_input_tensor(input);
            m_requests.front().request().get_input_tensor(input).copy_to(tensor);
        }
        m_requests.emplace_back(std::move(request), m_has_state, m_calls);
    }
    return m_requests[i];
}

double Executable::sample(std::size_t inferences, bool asynchronous, double pause_seconds) {
    Request& own = m_requests.front();
    const bool one_by_one = pause_seconds > 0 || m_calls != nullptr;
    const auto infer = [&] {
        if (!asynchronous) return own.infer();
        own.start();
        own.request().wait();
    };
    double seconds = 0;
    auto start = Clock::now();
    for (std::size_t i = 0; i < inferences; ++i) {
        if (pause_seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(pause_seconds));
        if (m_calls) {
            seconds += own.timed();
            continue;
        }
        if (one_by_one) start = Clock::now();
        infer();
        if (one_by_one) seconds += seconds_since(start);
    }
    if (!one_by_one) seconds = seconds_since(start);
    return seconds / static_cast<double>(inferences);
}

void Executable::save_outputs(const std::string& path) {
    std::vector<ov::Tensor> outputs;
    for (std::size_t i = 0; i < m_compiled.outputs().size(); ++i) {
        outputs.push_back(m_requests.front().request().get_output_tensor(i));
    }
    ov_autoplace::save_outputs(outputs, path);
}

Profiler::Profiler(const std::vector<std::pair<std::string, std::string>>& plugins,
                   const std::map<std::string, StringMap>& device_properties)
    : m_plugins(plugins) {
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
}

void Profiler::add_extension(const std::string& path) {
    if (m_extensions.count(path) != 0) {
        return;
    }
    m_core.add_extension(path);
    m_extensions.insert(path);
    void* const library = dlopen(path.c_str(), RTLD_NOW);
    const bool is_own = library != nullptr && dlsym(library, "ov_autoplace_register_plugin") ==
                                                  reinterpret_cast<void*>(&ov_autoplace_register_plugin);
    if (!is_own) {
        return;
    }
    // Its ops compile models on a Core of the library's own, which knows no registered devices.
    m_has_lanes = true;
    for (const auto& [name, plugin] : m_plugins) {
        if (ov_autoplace_register_plugin(name.c_str(), plugin.c_str()) != 0) {
            throw ProfilerError("lanes cannot have the device " + name + ": " + last_error);
        }
    }
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

std::unique_ptr<Executable> Profiler::compile(const std::string& xml_path, const std::string& device,
                                              const StringMap& properties, const StringMap* affinities,
                                              const Executable::Inputs& inputs,
                                              const std::string& weights_path) {
    const auto model = m_core.read_model(xml_path);
    if (!weights_path.empty()) {
        give_weights(*model, *m_core.read_model(weights_path));
    }
    if (affinities != nullptr) {
        set_affinities(*model, *affinities);
    }
    const auto lane_op = m_has_lanes ? lane_op_of(*model) : nullptr;
    if (lane_op) {
        // What is known of its runs is kept by name: no other one has this one here.
        lane_op->set_friendly_name(lane_op->get_friendly_name() + " (profiled " +
                                   std::to_string(++m_lane_ops) + ")");
    }
    const auto start = Clock::now();
    ov::CompiledModel compiled = m_core.compile_model(model, device, config_for(device, properties));
    auto executable = std::make_unique<Executable>(*model, std::move(compiled), inputs, seconds_since(start));
    if (lane_op) {
        executable->set_lane_op(lane_op->get_friendly_name());
    }
    return executable;
}

void Profiler::run_op_by_op(const std::string& xml_path, const Executable::Inputs& inputs, const OpByOp& how,
                            const std::vector<std::string>& paths, const Checkpoint& checkpoint) {
    const auto model = m_core.read_model(xml_path);
    std::vector<ov::Tensor> given;
    fill_inputs(*model, inputs, [&](std::size_t i) {
        const auto& input = model->get_parameters()[i];
        given.emplace_back(input->get_element_type(), input->get_output_shape(0));
        return given.back();
    });
    const auto runs = ov_autoplace::run_op_by_op(m_core, *model, given, how, checkpoint);
    for (std::size_t run = 0; run < runs.size(); ++run) {
        ov_autoplace::save_outputs(runs[run], paths.at(run));
    }
}

}  // namespace ov_autoplace
