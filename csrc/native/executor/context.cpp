#include "context.hpp"

#include "refuse.hpp"

namespace ov_autoplace::executor {
namespace {

// The same memory as another tensor. Requests of submodels that run at once are not to have a tensor in
// common: those of OpenVINO write when they are asked for their shape.
ov::Tensor view_of(const ov::element::Type& type, const ov::Shape& shape, const void* data) {
    static char nothing;  // OpenVINO wants an address for a tensor without elements, too.
    return {type, shape, data ? const_cast<void*>(data) : &nothing};
}

ov::Tensor view_of(const ov::Tensor& tensor) {
    return view_of(tensor.get_element_type(), tensor.get_shape(), tensor.data());
}

size_t index(const Source& source) { return static_cast<size_t>(source.submodel); }

bool is_fixed(const Compiled& compiled, const Source& source) {
    return compiled.models[index(source)].output(source.port).get_partial_shape().is_static();
}

}  // namespace

bool Context::Bound::is(const ov::Tensor& tensor) const {
    return data == tensor.data() && shape == tensor.get_shape();
}

void Context::Bound::set(const ov::Tensor& tensor) {
    data = tensor.data();
    shape = tensor.get_shape();
}

Context::Context(const Plan& plan, const Order& order, Occupancy& occupancy, const Compiled& compiled)
    : dispatch(order, occupancy),
      m_stays(plan.submodels.size()),
      m_links(plan.submodels.size()),
      m_loose(plan.submodels.size()),
      m_data_readers(plan.data_inputs),
      m_result_readers(plan.results.size()),
      m_data_bound(plan.data_inputs),
      m_results_bound(plan.results.size()),
      m_results(plan.results),
      m_promised(plan.result_shapes),
      m_in_place(plan.results.size()),
      m_result_shapes(plan.results.size()) {
    // The models are shared; making requests of them does not change them.
    for (const auto& model : compiled.models) {
        m_requests.push_back(ov::CompiledModel(model).create_infer_request());
    }
    choose_results_in_place(plan, compiled);
    connect(plan, compiled);
}

// A tensor that is an output of the plan more than once is written into one of them.
void Context::choose_results_in_place(const Plan& plan, const Compiled& compiled) {
    for (size_t r = 0; r < plan.results.size(); ++r) {
        const auto& source = plan.results[r];
        if (source.submodel == Source::data || !is_fixed(compiled, source)) continue;
        m_result_shapes[r] = compiled.models[index(source)].output(source.port).get_shape();
        m_in_place[r] = true;
        for (size_t other = 0; other < r; ++other) {
            const auto& it = plan.results[other];
            if (it.submodel == source.submodel && it.port == source.port) m_in_place[r] = false;
        }
    }
}

void Context::connect(const Plan& plan, const Compiled& compiled) {
    for (size_t i = 0; i < plan.submodels.size(); ++i) {
        const auto& sources = plan.submodels[i].inputs;
        for (size_t port = 0; port < sources.size(); ++port) {
            const auto& source = sources[port];
            if (source.submodel == Source::data) {
                m_data_readers[source.port].push_back({i, port});
            } else if (!is_fixed(compiled, source)) {
                const auto type = compiled.models[index(source)].output(source.port).get_element_type();
                m_links[i].push_back({port, index(source), loose_output(source, type)});
            } else {
                m_requests[i].set_input_tensor(
                    port, view_of(m_requests[index(source)].get_output_tensor(source.port)));
                for (size_t r = 0; r < plan.results.size(); ++r) {
                    const auto& result = plan.results[r];
                    if (m_in_place[r] && result.submodel == source.submodel && result.port == source.port)
                        m_result_readers[r].push_back({i, port});
                }
            }
        }
    }
}

size_t Context::loose_output(const Source& source, const ov::element::Type& type) {
    auto& outputs = m_loose[index(source)];
    for (size_t i = 0; i < outputs.size(); ++i) {
        if (outputs[i].port == source.port) return i;
    }
    outputs.push_back({source.port, type, {}, nullptr});
    return outputs.size() - 1;
}

bool Context::is_bound_to(const ov::TensorVector& inputs, const ov::TensorVector& outputs) const {
    for (size_t i = 0; i < inputs.size(); ++i) {
        if (!m_data_bound[i].is(inputs[i])) return false;
    }
    for (size_t r = 0; r < outputs.size(); ++r) {
        if (m_in_place[r] && !m_results_bound[r].is(outputs[r])) return false;
    }
    return true;
}

void Context::bind(const ov::TensorVector& inputs, ov::TensorVector& outputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
        if (m_data_bound[i].is(inputs[i])) continue;
        m_data_bound[i] = {};
        for (const auto& reader : m_data_readers[i]) {
            m_requests[reader.submodel].set_input_tensor(reader.port, view_of(inputs[i]));
        }
        m_data_bound[i].set(inputs[i]);
    }
    for (size_t r = 0; r < outputs.size(); ++r) {
        if (!m_in_place[r]) continue;
        auto& output = outputs[r];
        if (output.get_shape() != m_result_shapes[r]) output.set_shape(m_result_shapes[r]);
        if (m_results_bound[r].is(output)) continue;
        m_results_bound[r] = {};
        m_requests[index(m_results[r])].set_output_tensor(m_results[r].port, view_of(output));
        for (const auto& reader : m_result_readers[r]) {
            m_requests[reader.submodel].set_input_tensor(reader.port, view_of(output));
        }
        m_results_bound[r].set(output);
    }
}

void Context::infer(size_t submodel, size_t lane) {
    auto& stay = m_stays[submodel];
    stay.lane = lane;
    stay.start = Clock::now();
    auto& request = m_requests[submodel];
    for (const auto& link : m_links[submodel]) {
        const auto& output = m_loose[link.submodel][link.loose];
        request.set_input_tensor(link.port, view_of(output.type, output.shape, output.data));
    }
    request.infer();
    for (auto& output : m_loose[submodel]) {
        const auto tensor = request.get_output_tensor(output.port);
        output.shape = tensor.get_shape();
        output.data = tensor.data();
    }
    stay.finish = Clock::now();
}

void Context::collect(const ov::TensorVector& inputs, ov::TensorVector& outputs) {
    for (size_t r = 0; r < outputs.size(); ++r) {
        if (m_in_place[r]) continue;
        const auto& source = m_results[r];
        const auto tensor = source.submodel == Source::data
                                ? inputs[source.port]
                                : m_requests[index(source)].get_output_tensor(source.port);
        const auto shape = tensor.get_shape();
        if (!ov::PartialShape(shape).refines(m_promised[r])) {
            refuse("a schedule's output ", r, " is declared as ", m_promised[r], ", and has become ", shape);
        }
        if (outputs[r].get_shape() != shape) outputs[r].set_shape(shape);
        tensor.copy_to(outputs[r]);
    }
}

std::vector<ov::ProfilingInfo> Context::profile(size_t submodel) const {
    return m_requests[submodel].get_profiling_info();
}

}  // namespace ov_autoplace::executor
