#include "schedule_op.hpp"

#include <mutex>
#include <openvino/op/constant.hpp>

#include "../executor/refuse.hpp"
#include "schedule_profile.hpp"

namespace ov_autoplace {

using executor::refuse;

// What an op and its clones have in common. It does not keep the submodels alive: a model that was compiled
// may outlive what was compiled of it.
struct ScheduleOp::Shared {
    std::mutex mutex;
    std::weak_ptr<executor::Executor> executor;
    // Where the submodels' files were in memory when the executor was made.
    std::vector<std::pair<const void*, size_t>> identity;
};

namespace {

// What a submodel's file is in memory: a tensor that keeps its constant.
ov::Tensor constant_tensor(const ov::Node& op, size_t input, const char* kind, const std::string& submodel) {
    const auto node = op.get_input_node_shared_ptr(input);
    const auto constant = ov::as_type_ptr<ov::op::v0::Constant>(node);
    if (!constant || constant->get_element_type() != ov::element::u8 || constant->get_byte_size() == 0) {
        refuse("the ", kind, " of a schedule's submodel '", submodel, "' is no u8 constant, but ",
               node->get_type_name());
    }
    const ov::Tensor view(ov::element::u8, {constant->get_byte_size()}, constant->get_data_ptr());
    return {view, constant};
}

}  // namespace

ScheduleOp::ScheduleOp() : m_shared(std::make_shared<Shared>()) {}

bool ScheduleOp::visit_attributes(ov::AttributeVisitor& visitor) {
    auto& a = m_attributes;
    visitor.on_attribute("format", a.format);
    visitor.on_attribute("data_inputs", a.data_inputs);
    visitor.on_attribute("lanes", a.lanes);
    visitor.on_attribute("lane_properties", a.lane_properties);
    visitor.on_attribute("submodels", a.submodels);
    visitor.on_attribute("lane_of", a.lane_of);
    visitor.on_attribute("rank", a.rank);
    visitor.on_attribute("sources", a.sources);
    visitor.on_attribute("results", a.results);
    visitor.on_attribute("output_types", a.output_types);
    visitor.on_attribute("input_shapes", a.input_shapes);
    visitor.on_attribute("output_shapes", a.output_shapes);
    // OpenVINO's reader drops empty texts, so no file is to have one.
    for (auto& properties : a.lane_properties) {
        if (properties.empty()) properties = ";";
    }
    return true;
}

void ScheduleOp::validate_and_infer_types() {
    if (!m_schedule || !(m_schedule->attributes == m_attributes)) {
        m_schedule = std::make_shared<const Schedule>(decode(m_attributes));
    }
    const auto& plan = m_schedule->plan;
    const auto expected = plan.data_inputs + 2 * plan.submodels.size();
    if (get_input_size() != expected) {
        refuse("a schedule of ", plan.data_inputs, " data inputs and ", plan.submodels.size(),
               " submodels needs ", expected, " inputs and has ", get_input_size());
    }
    for (size_t i = 0; i < plan.data_inputs; ++i) {
        const auto& type = get_input_element_type(i);
        if (type.is_static() && !can_cross(type)) {
            refuse("a schedule's input ", i, " is ", type, ", and only f32, i32, i8 and u8 can cross it");
        }
        const auto& shape = get_input_partial_shape(i);
        if (!shape.refines(m_schedule->input_shapes[i])) {
            refuse("a schedule was made for input ", i, " of shape ", m_schedule->input_shapes[i],
                   " and cannot run ", shape, "; compile the original model for that shape");
        }
    }
    set_output_size(plan.results.size());
    for (size_t i = 0; i < plan.results.size(); ++i) {
        set_output_type(i, m_schedule->output_types[i], plan.result_shapes[i]);
    }
}

std::shared_ptr<ov::Node> ScheduleOp::clone_with_new_inputs(const ov::OutputVector& inputs) const {
    auto clone = std::make_shared<ScheduleOp>();
    clone->m_attributes = m_attributes;
    clone->m_schedule = m_schedule;
    clone->m_shared = m_shared;
    clone->set_arguments(inputs);
    clone->constructor_validate_and_infer_types();
    return clone;
}

std::vector<executor::Serialized> ScheduleOp::files() const {
    const auto& plan = m_schedule->plan;
    std::vector<executor::Serialized> files;
    for (size_t i = 0; i < plan.submodels.size(); ++i) {
        const auto& name = plan.submodels[i].name;
        const auto first = plan.data_inputs + 2 * i;
        files.push_back({constant_tensor(*this, first, "text", name),
                         constant_tensor(*this, first + 1, "weights", name)});
    }
    return files;
}

executor::Executor& ScheduleOp::executor() const {
    if (auto* ready = m_ready.load(std::memory_order_acquire)) return *ready;
    if (!m_schedule) refuse("a schedule was not validated before it is compiled");
    std::vector<std::pair<const void*, size_t>> identity;
    const auto files = this->files();
    for (const auto& file : files) {
        identity.emplace_back(file.xml.data(), file.xml.get_byte_size());
        identity.emplace_back(file.weights.data(), file.weights.get_byte_size());
    }
    const std::lock_guard lock(m_shared->mutex);
    if (auto* ready = m_ready.load(std::memory_order_acquire)) return *ready;
    auto executor = m_shared->executor.lock();
    if (!executor || m_shared->identity != identity) {
        executor = std::make_shared<executor::Executor>(m_schedule->plan, files);
        check_types(*executor);
        m_shared->executor = executor;
        m_shared->identity = identity;
    }
    remember(get_friendly_name(), executor);
    m_executor = executor;
    m_ready.store(m_executor.get(), std::memory_order_release);
    return *m_executor;
}

void ScheduleOp::check_types(const executor::Executor& executor) const {
    for (size_t i = 0; i < m_schedule->plan.data_inputs; ++i) {
        const auto& type = executor.data_types()[i];
        if (type.is_static() && type != get_input_element_type(i)) {
            refuse("a schedule's input ", i, " is ", get_input_element_type(i), ", and its submodels read ",
                   type);
        }
    }
    for (size_t i = 0; i < m_schedule->output_types.size(); ++i) {
        const auto& type = executor.result_types()[i];
        if (type.is_static() && type != m_schedule->output_types[i]) {
            refuse("a schedule's output ", i, " is ", m_schedule->output_types[i],
                   ", and its submodels write ", type);
        }
    }
}

bool ScheduleOp::has_evaluate() const {
    executor();
    return true;
}

bool ScheduleOp::evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const {
    auto& all = executor();
    const auto data_inputs = static_cast<std::ptrdiff_t>(m_schedule->plan.data_inputs);
    all.run({inputs.begin(), inputs.begin() + data_inputs}, outputs);
    return true;
}

bool ScheduleOp::can_constant_fold(const ov::OutputVector&) const { return false; }

}  // namespace ov_autoplace
