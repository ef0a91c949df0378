// The library that OpenVINO loads: core.add_extension("libov_autoplace_extension.so").
//
// OpenVINO's IR reader asks extensions for an op before its own opsets, and makes the op itself where an
// extension makes none. So this library sees the ops of common types in every IR that is read, and makes none
// of them, Parameters excepted, for models that are not annotated. In an annotated one each op gets its
// affinity when an op is made that reads it, and ops of common types are made as Follower, which looks after
// ops that are added near it later.
#include <openvino/core/op_extension.hpp>
#include <openvino/op/ops.hpp>
#include <openvino/op/util/op_types.hpp>
#include <openvino/opsets/opset.hpp>
#include <vector>

#include "cached.hpp"
#include "follower.hpp"
#include "marks.hpp"
#include "schedule_op.hpp"

namespace ov_autoplace {
namespace {

using ov::Node;
using NodePtr = std::shared_ptr<Node>;

// Parameters of the model that this thread is reading. The reader puts an op's annotation on it after it was
// made, and a Parameter that nothing reads has no other op that could mark it.
thread_local std::vector<std::weak_ptr<Node>> waiting;

// Whether it is known where the model that this thread is reading comes from. Reading begins with Parameters.
thread_local bool origin_is_known = false;

// What is done with ops of one type when they are read.
class Reading : public ov::BaseOpExtension {
public:
    explicit Reading(const ov::DiscreteTypeInfo& type) : m_type(type) {}

    const ov::DiscreteTypeInfo& get_type_info() const override { return m_type; }
    std::vector<ov::Extension::Ptr> get_attached_extensions() const override { return {}; }

    ov::OutputVector create(const ov::OutputVector& inputs, ov::AttributeVisitor& visitor) const override {
        for (const auto& parameter : waiting) {
            if (const auto op = parameter.lock()) mark(*op);
        }
        waiting.clear();
        const bool ours = mark_producers(inputs);
        if (ours && !origin_is_known) look_for_origin(inputs);
        const auto op = make(ours, inputs, visitor);
        return {op ? op->output(0) : ov::Output<Node>()};
    }

protected:
    static void look_for_origin(const ov::OutputVector& inputs) {
        for (const auto& input : inputs) {
            const auto& op = *input.get_node();
            const bool says_nothing = ov::op::util::is_constant(&op) || ov::op::util::is_parameter(&op);
            if (says_nothing || !is_annotated(op)) continue;
            origin_is_known = true;
            refuse_unsigned_from_cache(op);
        }
    }

    // The op, or nothing: then OpenVINO's reader makes it. In a model that is `ours` the inputs' ops have an
    // affinity.
    virtual NodePtr make(bool ours, const ov::OutputVector& inputs, ov::AttributeVisitor& visitor) const = 0;

    // The op as OpenVINO's reader makes it.
    NodePtr make_plain(const ov::OutputVector& inputs, ov::AttributeVisitor& visitor) const {
        const NodePtr op(ov::get_available_opsets().at(m_type.version_id)().create(m_type.name));
        op->set_arguments(inputs);
        if (op->visit_attributes(visitor)) op->constructor_validate_and_infer_types();
        return op->clone_with_new_inputs(op->input_values());
    }

private:
    ov::DiscreteTypeInfo m_type;
};

// Ops of common types.
class ReadingFollowers : public Reading {
public:
    using Follow = NodePtr (*)(const Node&);
    ReadingFollowers(const ov::DiscreteTypeInfo& type, Follow follow) : Reading(type), m_follow(follow) {
        FollowerBase::register_type(type);
    }

private:
    NodePtr make(bool ours, const ov::OutputVector& inputs, ov::AttributeVisitor& visitor) const override {
        return ours ? m_follow(*make_plain(inputs, visitor)) : nullptr;
    }
    Follow m_follow;
};

class ReadingParameters : public Reading {
    using Reading::Reading;
    NodePtr make(bool, const ov::OutputVector& inputs, ov::AttributeVisitor& visitor) const override {
        const auto parameter = make_plain(inputs, visitor);
        waiting.push_back(parameter);
        origin_is_known = false;
        return parameter;
    }
};

// Ops that nothing reads: they are on the device of their producer.
class ReadingEnds : public Reading {
public:
    using Reading::Reading;

protected:
    NodePtr make(bool ours, const ov::OutputVector& inputs, ov::AttributeVisitor& visitor) const override {
        if (!ours) return nullptr;
        const auto op = make_plain(inputs, visitor);
        set_affinity(*op, affinity(*inputs[0].get_node()));
        return op;
    }
};

// A Result of an op that is no follower, a Loop for example, reads it through one that changes nothing, which
// plugins remove: what is added behind the op would not get a device otherwise.
class ReadingResults : public ReadingEnds {
    using ReadingEnds::ReadingEnds;
    NodePtr make(bool ours, const ov::OutputVector& inputs, ov::AttributeVisitor& visitor) const override {
        const auto type = inputs[0].get_element_type();
        const bool can_follow = type.is_static() && type != ov::element::string;
        if (!ours || !can_follow || FollowerBase::is_one(*inputs[0].get_node())) {
            return ReadingEnds::make(ours, inputs, visitor);
        }
        return ReadingEnds::make(ours, {follower_behind(inputs[0])}, visitor);
    }

    static ov::Output<Node> follower_behind(ov::Output<Node> output) {
        for (const auto& target : output.get_target_inputs()) {
            auto* reader = target.get_node();
            // Made here for another Result; the file's ops have their annotation.
            if (FollowerBase::is_one(*reader) && !is_annotated(*reader)) return reader->output(0);
        }
        const auto follower =
            Follower<ov::op::v0::Convert>::of(ov::op::v0::Convert(output, output.get_element_type()));
        set_affinity(*follower, affinity(*output.get_node()));
        // The model's output keeps its names.
        follower->set_friendly_name(output.get_node()->get_friendly_name() + "/output" +
                                    std::to_string(output.get_index()));
        follower->output(0).set_names(output.get_names());
        output.set_names({});
        return follower;
    }
};

template <class Kind, class... Ops>
void add(std::vector<ov::Extension::Ptr>& extensions) {
    (extensions.push_back(std::make_shared<Kind>(Ops::get_type_info_static())), ...);
}

template <class... Ops>
void add_followers(std::vector<ov::Extension::Ptr>& extensions) {
    (extensions.push_back(
         std::make_shared<ReadingFollowers>(Ops::get_type_info_static(), &Follower<Ops>::of)),
     ...);
}

// OpenVINO looks at all extensions for each model that it reads, so there are only the types of which at
// least one is near every other op, and those that models end with. No type is among them that Python knows
// as a class of its own: it would take a follower for a plain Node.
std::vector<ov::Extension::Ptr> all_extensions() {
    using namespace ov::op;
    std::vector<ov::Extension::Ptr> all{std::make_shared<ov::OpExtension<ScheduleOp>>()};
    add<ReadingParameters, v0::Parameter>(all);
    add<ReadingResults, v0::Result>(all);
    add<ReadingEnds, v3::Assign, v6::Assign>(all);
    add_followers<v0::MatMul, v1::Convolution, v1::GroupConvolution, v1::ConvolutionBackpropData,
                  v13::ScaledDotProductAttention, v5::LSTMSequence, v5::GRUSequence>(all);
    add_followers<v1::Add, v1::Subtract, v1::Multiply, v1::Divide, v1::Power, v1::Maximum, v1::Minimum,
                  v1::Equal, v1::Greater, v1::Less, v1::Select, v1::LogicalAnd, v1::LogicalNot, v0::Convert>(
        all);
    add_followers<v0::Relu, v0::PRelu, v0::Sigmoid, v0::Tanh, v0::Gelu, v7::Gelu, v4::Swish, v4::HSwish,
                  v0::Clamp, v0::Exp, v0::Sqrt, v1::Softmax, v8::Softmax, v5::LogSoftmax, v0::FakeQuantize>(
        all);
    add_followers<v5::BatchNormInference, v6::MVN, v0::NormalizeL2, v1::MaxPool, v8::MaxPool, v14::MaxPool,
                  v1::AvgPool, v14::AvgPool, v1::ReduceMean, v1::ReduceSum, v1::ReduceMax, v1::ReduceMin,
                  v4::ReduceL2>(all);
    add_followers<v1::Reshape, v1::Transpose, v0::Squeeze, v0::Unsqueeze, v0::Concat, v1::Split,
                  v1::VariadicSplit, v8::Slice, v1::StridedSlice, v1::Gather, v7::Gather, v8::Gather, v1::Pad,
                  v12::Pad, v3::Broadcast, v0::Tile, v0::DepthToSpace, v0::ShapeOf, v3::ShapeOf,
                  v4::Interpolate, v11::Interpolate>(all);
    add_followers<v3::TopK, v11::TopK, v9::NonMaxSuppression, v8::DetectionOutput>(all);
    return all;
}

}  // namespace

// They have no state, so all Cores share them.
const std::vector<ov::Extension::Ptr>& extensions() {
    static const auto all = all_extensions();
    return all;
}

}  // namespace ov_autoplace

OPENVINO_CREATE_EXTENSIONS(ov_autoplace::extensions())
