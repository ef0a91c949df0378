#include "marks.hpp"

#include <vector>

#include "devices.hpp"

namespace ov_autoplace {
namespace {

const std::string annotation_key = "user_data:autoplace";
const std::string affinity_key = "affinity";

std::string text(const ov::Node& op, const std::string& key) {
    const auto& marks = op.get_rt_info();
    const auto found = marks.find(key);
    // A mark of another type is none of ours.
    return found != marks.end() && found->second.is<std::string>() ? found->second.as<std::string>()
                                                                   : std::string();
}

}  // namespace

std::string affinity(const ov::Node& op) { return text(op, affinity_key); }

bool has_affinity(const ov::Node& op) { return op.get_rt_info().count(affinity_key) != 0; }

void set_affinity(ov::Node& op, const std::string& device) { op.get_rt_info()[affinity_key] = device; }

bool mark(ov::Node& op) {
    if (has_affinity(op)) return true;
    const auto device = text(op, annotation_key);
    if (device.empty()) return false;
    set_affinity(op, device_here(device));
    return true;
}

bool mark_producers(const ov::OutputVector& inputs) {
    bool ours = false;
    std::vector<ov::Node*> fresh;
    const auto look_at = [&](ov::Node* op) {
        if (has_affinity(*op)) {
            ours = true;
        } else if (mark(*op)) {
            ours = true;
            fresh.push_back(op);
        }
    };
    for (const auto& input : inputs) look_at(input.get_node());
    // Ops of other extensions do not mark what they read, so it is done for them.
    while (!fresh.empty()) {
        const auto* op = fresh.back();
        fresh.pop_back();
        for (const auto& input : op->inputs()) look_at(input.get_source_output().get_node());
    }
    return ours;
}

bool is_annotated(const ov::Node& op) { return op.get_rt_info().count(annotation_key) != 0; }

}  // namespace ov_autoplace
