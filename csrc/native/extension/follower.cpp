#include "follower.hpp"

#include <mutex>
#include <openvino/op/util/assign_base.hpp>
#include <openvino/op/util/op_types.hpp>
#include <set>

#include "cached.hpp"
#include "gaps.hpp"
#include "marks.hpp"

namespace ov_autoplace {
namespace {

// Whether `holds` for a producer or a consumer of `op`.
template <class Condition>
bool any_neighbour(const ov::Node& op, const Condition& holds) {
    for (size_t i = 0; i < op.get_input_size(); ++i) {
        if (holds(*op.get_input_node_ptr(i))) return true;
    }
    for (size_t i = 0; i < op.get_output_size(); ++i) {
        for (const auto& target : op.get_output_target_inputs(i)) {
            if (holds(*target.get_node())) return true;
        }
    }
    return false;
}

// Types of followers; filled once, when OpenVINO loads the library.
std::set<ov::DiscreteTypeInfo>& types() {
    static std::set<ov::DiscreteTypeInfo> set;
    return set;
}

}  // namespace

bool FollowerBase::is_new(const ov::Node& op) {
    if (!has_affinity(op) || !is_annotated(op)) return true;
    // The ends of a model are never made as followers.
    const bool end = ov::op::util::is_parameter(&op) || ov::op::util::is_constant(&op) ||
                     ov::op::util::is_output(&op) || ov::is_type<ov::op::util::AssignBase>(&op);
    return !end && !is_one(op);
}

bool FollowerBase::was_added(const ov::Node& op) {
    return !is_annotated(op) || (types().count(op.get_type_info()) != 0 && !is_one(op));
}

void FollowerBase::register_type(const ov::DiscreteTypeInfo& type) { types().insert(type); }

void FollowerBase::after_validation(ov::Node& op) {
    // Somebody freed the model of its annotation.
    if (!mark(op)) return;
    // Plugins validate often, so this is the least that finds ops that were just added.
    if (any_neighbour(op, [](const ov::Node& other) { return !has_affinity(other); })) fill_gaps_around(op);
}

void FollowerBase::after_cloning(const ov::Node& original, const ov::Node& clone) {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    auto& op = const_cast<ov::Node&>(original);
    if (!mark(op)) return;
    sign(op);
    if (!any_neighbour(op, is_new)) return;
    // Ops were added and the model was not validated since. Those before this op have been cloned; those
    // after it have not, and get their devices in the original. Threads that clone it at the same time find
    // them there, because each comes by here before it clones an op behind this one.
    fill_gaps_before(clone, affinity(op));
    fill_gaps_after(op);
}

}  // namespace ov_autoplace
