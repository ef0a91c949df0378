#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <openvino/op/constant.hpp>
#include <openvino/op/parameter.hpp>
#include <openvino/op/result.hpp>
#include <openvino/op/util/assign_base.hpp>
#include <openvino/op/util/read_value_base.hpp>
#include <openvino/runtime/properties.hpp>
#include <random>

#include "profiler.hpp"

namespace ov_autoplace {
namespace {

using Clock = std::chrono::steady_clock;
using Tensors = std::vector<ov::Tensor>;
using Node = std::shared_ptr<ov::Node>;

// Integers of at most so many elements are sizes, axes and counts, which plugins want to know.
constexpr std::size_t kFewElements = 16;

ov::Tensor empty_like(const ov::Output<ov::Node>& output) {
    const auto& shape = output.get_partial_shape();
    return {output.get_element_type(), shape.is_static() ? shape.to_shape() : ov::Shape{0}};
}

// Rounds each element to so few bits that the relative error is up to `noise`, up or down by chance. What has
// no more bits, like small integers, is exact as it is in any precision.
template <typename T>
void disturb_as(ov::Tensor& tensor, double noise, std::mt19937_64& generator) {
    std::uniform_real_distribution<float> chance(0.0F, 1.0F);
    const int bits = static_cast<int>(std::ceil(std::log2(noise)));
    T* const data = tensor.data<T>();
    for (std::size_t i = 0; i < tensor.get_size(); ++i) {
        const float value = static_cast<float>(data[i]);
        if (value == 0 || !std::isfinite(value)) {
            continue;
        }
        const int step = std::ilogb(value) + bits;
        data[i] = static_cast<T>(std::ldexp(std::floor(std::ldexp(value, -step) + chance(generator)), step));
    }
}

class Run {
public:
    Run(ov::Core& core, const OpByOp& how, const Checkpoint& checkpoint)
        : m_core(core), m_how(how), m_checkpoint(checkpoint) {}

    std::vector<Tensors> run(const ov::Model& model, const Tensors& inputs) {
        std::vector<Tensors> results(1 + m_how.disturbed);
        const auto& parameters = model.get_parameters();
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            m_values[parameters[i]->output(0)].assign(results.size(), inputs[i]);
        }
        for (const Node& op : model.get_ordered_ops()) {
            if (std::chrono::duration<double>(Clock::now() - m_start).count() > m_how.seconds) {
                throw ProfilerError("the time ended before the model was run op by op");
            }
            m_checkpoint();
            if (ov::as_type_ptr<ov::op::v0::Parameter>(op) == nullptr) {
                step(op, results.size());
            }
        }
        for (const auto& result : model.get_results()) {
            const auto& found = m_values.at(result->input_value(0));
            for (std::size_t stream = 0; stream < results.size(); ++stream) {
                results[stream].push_back(found[stream]);
            }
        }
        return results;
    }

private:
    // Runs one op in all streams.
    void step(const Node& op, std::size_t streams) {
        if (const auto constant = ov::as_type_ptr<ov::op::v0::Constant>(op)) {
            void* const data = const_cast<void*>(constant->get_data_ptr());
            m_values[op->output(0)] = {ov::Tensor(op->get_element_type(), op->get_shape(), data)};
            return;
        }
        if (ov::as_type_ptr<ov::op::v0::Result>(op) != nullptr) {
            stretch(op->input_value(0), streams);
            return;
        }
        if (ov::as_type_ptr<ov::op::util::AssignBase>(op) != nullptr) {
            m_values[op->output(0)] = m_values.at(op->input_value(0));
            return;
        }
        if (ov::as_type_ptr<ov::op::util::ReadValueBase>(op) != nullptr) {
            m_values[op->output(0)] =
                op->get_input_size() > 0 ? m_values.at(op->input_value(0)) : Tensors{no_state(*op)};
            return;
        }
        // What follows from constants alone has one value, and is not rounded again.
        std::size_t needed = 1;
        for (const auto& input : op->input_values()) {
            needed = std::max(needed, m_values.at(input).size());
        }
        Alone alone;
        std::vector<Tensors> outputs(op->get_output_size());
        for (std::size_t stream = 0; stream < needed; ++stream) {
            Tensors inputs;
            for (const auto& input : op->input_values()) {
                const Tensors& values = m_values.at(input);
                inputs.push_back(values[values.size() == 1 ? 0 : stream]);
            }
            Tensors found = outputs_of(op, inputs, alone);
            for (std::size_t i = 0; i < found.size(); ++i) {
                if (stream > 0) {
                    disturb(found[i]);
                }
                outputs[i].push_back(std::move(found[i]));
            }
        }
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            m_values[op->output(i)] = std::move(outputs[i]);
        }
        for (const auto& input : op->input_values()) {
            if (++m_uses[input] == input.get_target_inputs().size()) {
                m_values.at(input).clear();  // a result of the model is read later, and so not used up here
            }
        }
    }

    // An op that was compiled by itself.
    struct Alone {
        ov::InferRequest request;
        std::vector<std::size_t> given;  // inputs that are Parameters
        Tensors inputs;                  // what it was compiled for

        bool fits(const Tensors& others) const {
            for (std::size_t i = 0; i < inputs.size(); ++i) {
                const bool is_given = std::find(given.begin(), given.end(), i) != given.end();
                if (inputs[i].get_shape() != others[i].get_shape() ||
                    (!is_given &&
                     std::memcmp(inputs[i].data(), others[i].data(), inputs[i].get_byte_size()) != 0)) {
                    return false;
                }
            }
            return !inputs.empty();
        }
    };

    Tensors outputs_of(const Node& op, const Tensors& inputs, Alone& alone) {
        const bool is_integer = !op->get_output_element_type(0).is_real();
        if ((m_how.evaluate || is_integer) && op->has_evaluate()) {
            Tensors outputs;
            for (const auto& output : op->outputs()) {
                outputs.push_back(empty_like(output));
            }
            if (op->evaluate(outputs, inputs)) {
                return outputs;
            }
        }
        if (!m_how.compile) {
            throw ProfilerError("op '" + op->get_friendly_name() + "' (" + op->get_type_name() +
                                ") cannot be evaluated");
        }
        if (!alone.fits(inputs)) {
            alone = compiled(op, inputs);
        }
        for (std::size_t i = 0; i < alone.given.size(); ++i) {
            alone.request.set_input_tensor(i, inputs[alone.given[i]]);
        }
        alone.request.infer();
        Tensors outputs;
        for (std::size_t i = 0; i < op->get_output_size(); ++i) {
            const ov::Tensor found = alone.request.get_output_tensor(i);
            outputs.emplace_back(found.get_element_type(), found.get_shape());
            found.copy_to(outputs.back());
        }
        return outputs;
    }

    Alone compiled(const Node& op, const Tensors& inputs) {
        Alone alone;
        alone.inputs = inputs;
        ov::OutputVector sources;
        ov::ParameterVector parameters;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            const ov::Tensor& input = inputs[i];
            const bool is_known = m_values.at(op->input_value(i)).size() == 1 && m_how.disturbed > 0;
            const bool is_size =
                i > 0 && !input.get_element_type().is_real() && input.get_size() <= kFewElements;
            const bool is_constant =
                ov::as_type_ptr<ov::op::v0::Constant>(op->input_value(i).get_node_shared_ptr()) != nullptr;
            if (is_known || is_size || is_constant) {
                sources.push_back(std::make_shared<ov::op::v0::Constant>(input));
                continue;
            }
            parameters.push_back(
                std::make_shared<ov::op::v0::Parameter>(input.get_element_type(), input.get_shape()));
            sources.push_back(parameters.back());
            alone.given.push_back(i);
        }
        const Node clone = op->clone_with_new_inputs(sources);
        ov::ResultVector results;
        for (const auto& output : clone->outputs()) {
            results.push_back(std::make_shared<ov::op::v0::Result>(output));
        }
        alone.request = m_core
                            .compile_model(std::make_shared<ov::Model>(results, parameters), "CPU",
                                           ov::hint::inference_precision(ov::element::f32), ov::cache_dir(""))
                            .create_infer_request();
        return alone;
    }

    static ov::Tensor no_state(const ov::Node& op) {
        ov::Shape shape;
        for (const auto& size : op.get_output_partial_shape(0)) {
            shape.push_back(size.is_static() ? size.get_length() : 0);
        }
        ov::Tensor tensor(op.get_output_element_type(0), shape);
        std::memset(tensor.data(), 0, tensor.get_byte_size());
        return tensor;
    }

    void disturb(ov::Tensor& tensor) {
        switch (tensor.get_element_type()) {
            case ov::element::f32:
                return disturb_as<float>(tensor, m_how.noise, m_generator);
            case ov::element::f16:
                return disturb_as<ov::float16>(tensor, m_how.noise, m_generator);
            case ov::element::bf16:
                return disturb_as<ov::bfloat16>(tensor, m_how.noise, m_generator);
            case ov::element::f64:
                return disturb_as<double>(tensor, m_how.noise, m_generator);
            default:
                return;
        }
    }

    // Gives a value that is the same in all streams to each of them.
    void stretch(const ov::Output<ov::Node>& output, std::size_t streams) {
        Tensors& values = m_values.at(output);
        values.resize(streams, values.front());
    }

    ov::Core& m_core;
    const OpByOp& m_how;
    const Checkpoint& m_checkpoint;
    std::map<ov::Output<ov::Node>, Tensors> m_values;    // of each stream, or one that is the same in all
    std::map<ov::Output<ov::Node>, std::size_t> m_uses;  // so many consumers have run
    std::mt19937_64 m_generator{0};
    Clock::time_point m_start = Clock::now();
};

}  // namespace

std::vector<Tensors> run_op_by_op(ov::Core& core, const ov::Model& model, const Tensors& inputs,
                                  const OpByOp& how, const Checkpoint& checkpoint) {
    return Run(core, how, checkpoint).run(model, inputs);
}

}  // namespace ov_autoplace
