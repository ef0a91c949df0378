// Applies the annotation of `ov-autoplace annotate` in a C++ application, with OpenVINO's public API only.
//
//     ov::Core core;
//     auto model = core.read_model("model.autoplace.xml");
//     ov::CompiledModel compiled = autoplace::compile_annotated(core, model);
//
// Copy this header into your application; it has no other dependency.
#pragma once

#include <algorithm>
#include <memory>
#include <openvino/openvino.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace autoplace {

/// Where the annotation stands: per op as runtime information, and as a summary of the model.
inline constexpr const char* kOpKey = "user_data:autoplace";
inline constexpr const char* kAffinityKey = "affinity";

namespace detail {

/// Device of an op, or an empty string when it was added after the annotation (by preprocessing, say).
inline std::string annotated_device(const ov::Node& op) {
    const auto& info = op.get_rt_info();
    const auto found = info.find(kOpKey);
    return found == info.end() ? std::string() : found->second.as<std::string>();
}

/// Device of the first neighbour that has one.
inline std::string neighbour_device(const ov::Node& op,
                                    const std::unordered_map<const ov::Node*, std::string>& device_of) {
    for (const auto& input : op.inputs()) {
        const auto found = device_of.find(input.get_source_output().get_node());
        if (found != device_of.end()) return found->second;
    }
    for (const auto& output : op.outputs()) {
        for (const auto& target : output.get_target_inputs()) {
            const auto found = device_of.find(target.get_node());
            if (found != device_of.end()) return found->second;
        }
    }
    return {};
}

}  // namespace detail

/// Turns the annotation into HETERO's affinities; the model is modified.
///
/// HETERO wants an affinity on every op. Ops without an annotation, which preprocessing or a reshape may have
/// added since, take the device of a neighbour.
///
/// @return The devices, most preferred first, ready to be appended to "HETERO:".
/// @throws std::runtime_error The model carries no annotation.
inline std::string apply_affinities(const std::shared_ptr<ov::Model>& model) {
    const auto ops = model->get_ordered_ops();
    std::unordered_map<const ov::Node*, std::string> device_of;
    for (const auto& op : ops) {
        const auto device = detail::annotated_device(*op);
        if (!device.empty()) device_of.emplace(op.get(), device);
    }
    if (device_of.empty()) {
        throw std::runtime_error("model '" + model->get_friendly_name() +
                                 "' carries no annotation; make one with `ov-autoplace annotate`");
    }
    // Each round reaches the neighbours of the round before.
    for (size_t before = 0; device_of.size() != before;) {
        before = device_of.size();
        for (const auto& op : ops) {
            if (device_of.count(op.get()) != 0) continue;
            const auto device = detail::neighbour_device(*op, device_of);
            if (!device.empty()) device_of.emplace(op.get(), device);
        }
    }
    // What touches no annotated op at all (a new Parameter that nobody reads) may run anywhere.
    const std::string anywhere = device_of.begin()->second;
    std::vector<std::string> devices;
    if (model->has_rt_info({"autoplace", "devices"})) {
        std::istringstream list(model->get_rt_info<std::string>({"autoplace", "devices"}));
        for (std::string device; std::getline(list, device, ',');) devices.push_back(device);
    }
    for (const auto& op : ops) {
        const auto found = device_of.find(op.get());
        const auto& device = found != device_of.end() ? found->second : anywhere;
        op->get_rt_info()[kAffinityKey] = device;
        if (std::find(devices.begin(), devices.end(), device) == devices.end()) devices.push_back(device);
    }
    std::string priorities;
    for (const auto& device : devices) priorities += (priorities.empty() ? "" : ",") + device;
    return priorities;
}

/// Compiles an annotated model: on HETERO with its devices, or on the device itself when there is only one.
inline ov::CompiledModel compile_annotated(ov::Core& core, const std::shared_ptr<ov::Model>& model,
                                           const ov::AnyMap& config = {}) {
    const auto devices = apply_affinities(model);
    const bool single = devices.find(',') == std::string::npos;
    return core.compile_model(model, single ? devices : "HETERO:" + devices, config);
}

}  // namespace autoplace
