#include "submodels.hpp"

#include <algorithm>
#include <cstring>
#include <openvino/op/constant.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>
#include <openvino/runtime/properties.hpp>

#include "core.hpp"
#include "refuse.hpp"

namespace ov_autoplace::executor {
namespace {

std::string label(const Plan& plan, size_t submodel) {
    const auto& it = plan.submodels[submodel];
    return "submodel '" + it.name + "' on " + plan.lanes[it.lane].device;
}

// FNV-1a, by words, of the values of all constants.
uint64_t digest(const ov::Model& model, uint64_t found = 0xcbf29ce484222325) {
    for (const auto& op : model.get_ordered_ops()) {
        if (const auto body = std::dynamic_pointer_cast<ov::op::util::MultiSubGraphOp>(op)) {
            for (const auto& it : body->get_functions()) found = digest(*it, found);
        }
        const auto constant = ov::as_type_ptr<ov::op::v0::Constant>(op);
        if (!constant || constant->get_element_type() == ov::element::string) continue;
        const auto* data = static_cast<const char*>(constant->get_data_ptr());
        const size_t size = constant->get_byte_size();
        for (size_t begin = 0; begin < size; begin += sizeof(uint64_t)) {
            uint64_t word = 0;
            std::memcpy(&word, data + begin, std::min(sizeof(word), size - begin));
            found = (found ^ word) * 0x100000001b3;
        }
    }
    return found;
}

ov::CompiledModel compile_one(ov::Core& core, const Lane& lane, const Serialized& file) {
    const std::string xml(static_cast<const char*>(file.xml.data()), file.xml.get_byte_size());
    const auto model = core.read_model(xml, file.weights);
    ov::AnyMap properties;
    for (const auto& [key, value] : lane.properties) properties[key] = value;
    // Before OpenVINO 2026.0, a cache takes models for one that differ in their constants alone.
    const auto cache = properties.find(ov::cache_dir.name());
    if (cache != properties.end() && !cache->second.as<std::string>().empty()) {
        model->set_rt_info(std::to_string(digest(*model)), "ov_autoplace", "constants");
    }
    try {
        return core.compile_model(model, lane.device, properties);
    } catch (const ov::Exception&) {
        // The file may come from a machine where the folder of its cache could be written.
        if (properties.erase(ov::cache_dir.name()) == 0) throw;
        return core.compile_model(model, lane.device, properties);
    }
}

uint32_t streams_of(const ov::CompiledModel& model) {
    try {
        return static_cast<uint32_t>(std::max(1, model.get_property(ov::num_streams).num));
    } catch (const ov::Exception&) {
        return 1;  // Not every device has streams.
    }
}

// The output that a source names; the submodels before it have been compiled.
ov::Output<const ov::Node> output_of(const Compiled& compiled, const Source& source,
                                     const std::string& reader) {
    const auto& producer = compiled.models.at(static_cast<size_t>(source.submodel));
    const auto outputs = producer.outputs();
    if (source.port >= outputs.size()) {
        refuse(reader, " reads output ", source.port, " of submodel ", source.submodel, ", which has ",
               outputs.size());
    }
    return outputs[source.port];
}

void check_inputs(const Plan& plan, size_t submodel, Compiled& compiled) {
    const auto& sources = plan.submodels[submodel].inputs;
    const auto inputs = compiled.models[submodel].inputs();
    const auto reader = label(plan, submodel);
    if (inputs.size() != sources.size()) {
        refuse(reader, " has ", inputs.size(), " inputs, but the schedule names ", sources.size());
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
        const auto type = inputs[i].get_element_type();
        if (sources[i].submodel == Source::data) {
            auto& known = compiled.data_types[sources[i].port];
            if (known == ov::element::dynamic) known = type;
            if (known != type) {
                refuse(reader, " reads data input ", sources[i].port, " as ", type, ", another submodel as ",
                       known);
            }
            continue;
        }
        const auto output = output_of(compiled, sources[i], reader);
        if (output.get_element_type() != type ||
            !output.get_partial_shape().compatible(inputs[i].get_partial_shape())) {
            refuse(reader, " takes ", type, inputs[i].get_partial_shape(), " as input ", i, ", but gets ",
                   output.get_element_type(), output.get_partial_shape());
        }
    }
}

void check_result(const Plan& plan, size_t result, Compiled& compiled) {
    const auto& source = plan.results[result];
    if (source.submodel == Source::data) {
        compiled.result_types.push_back(compiled.data_types[source.port]);
        return;
    }
    const auto output = output_of(compiled, source, "an output");
    const auto shape = output.get_partial_shape();
    if (!shape.compatible(plan.result_shapes[result])) {
        refuse("a schedule's output ", result, " is declared as ", plan.result_shapes[result],
               ", and its submodels write ", shape);
    }
    compiled.result_types.push_back(output.get_element_type());
}

}  // namespace

Compiled compile(const Plan& plan, const std::vector<Serialized>& files) {
    check(plan);
    Compiled compiled;
    // Devices make their threads now and then; they are not to inherit where this one is bound to.
    const MaskedScope scope(compiled.mask);
    compiled.core = shared_core();
    compiled.data_types.assign(plan.data_inputs, ov::element::dynamic);
    for (size_t i = 0; i < plan.submodels.size(); ++i) {
        try {
            compiled.models.push_back(
                compile_one(*compiled.core, plan.lanes[plan.submodels[i].lane], files.at(i)));
        } catch (const std::exception& error) {
            refuse(label(plan, i), " cannot be compiled: ", reason_of(error));
        }
        compiled.streams.push_back(streams_of(compiled.models.back()));
        check_inputs(plan, i, compiled);
    }
    for (size_t r = 0; r < plan.results.size(); ++r) check_result(plan, r, compiled);
    return compiled;
}

}  // namespace ov_autoplace::executor
