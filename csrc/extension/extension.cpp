// The library that OpenVINO loads: core.add_extension("libov_autoplace_extension.so").
//
// OpenVINO's IR reader asks extensions for an op before its own opsets, and makes the op itself where an
// extension makes none. So this library sees every op of every IR that is read, and makes none for models
// that are not annotated. In an annotated one each op gets its affinity when an op is made that reads it, and
// ops of most types are made as Follower, which looks after ops that are added next to it later.
#include <map>
#include <openvino/core/op_extension.hpp>
#include <openvino/op/ops.hpp>
#include <openvino/opsets/opset.hpp>
#include <type_traits>
#include <utility>
#include <vector>

#include "follower.hpp"
#include "marks.hpp"

namespace ov_autoplace {
namespace {

using ov::Node;
using NodePtr = std::shared_ptr<Node>;

// Parameters of the model that this thread is reading. The reader puts an op's annotation on it after it was
// made, and a Parameter that nothing reads has no other op that could mark it.
thread_local std::vector<std::weak_ptr<Node>> waiting;

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
        const auto op = make(ours, inputs, visitor);
        return {op ? op->output(0) : ov::Output<Node>()};
    }

protected:
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

// Ops of most types.
class ReadingFollowers : public Reading {
public:
    using Follow = NodePtr (*)(const Node&);
    ReadingFollowers(const ov::DiscreteTypeInfo& type, Follow follow) : Reading(type), m_follow(follow) {}

private:
    NodePtr make(bool ours, const ov::OutputVector& inputs, ov::AttributeVisitor& visitor) const override {
        return ours ? m_follow(*make_plain(inputs, visitor)) : nullptr;
    }
    Follow m_follow;
};

// Ops that Python knows as a class of its own, which it would not recognise in a follower.
class ReadingOthers : public Reading {
    using Reading::Reading;
    NodePtr make(bool, const ov::OutputVector&, ov::AttributeVisitor&) const override { return nullptr; }
};

class ReadingParameters : public Reading {
    using Reading::Reading;
    NodePtr make(bool, const ov::OutputVector& inputs, ov::AttributeVisitor& visitor) const override {
        const auto parameter = make_plain(inputs, visitor);
        waiting.push_back(parameter);
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

// A Result of an op that is no follower, a Loop for example, reads it through one that changes nothing, which plugins
// remove: what is added behind the op would not get a device otherwise.
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
        const auto follower = Follower<ov::op::v0::Convert>::of(ov::op::v0::Convert(output, output.get_element_type()));
        set_affinity(*follower, affinity(*output.get_node()));
        // The model's output keeps its names.
        follower->set_friendly_name(output.get_node()->get_friendly_name() + "/output" +
                                    std::to_string(output.get_index()));
        follower->output(0).set_names(output.get_names());
        output.set_names({});
        return follower;
    }
};

class Extensions {
public:
    Extensions() {
        using namespace ov::op;
        add<ReadingParameters, v0::Parameter>();
        add<ReadingResults, v0::Result>();
        add<ReadingEnds, v3::Assign, v6::Assign>();
        add<ReadingOthers, v0::Constant, v3::ReadValue, v6::ReadValue, v8::If, v5::Loop,
            v0::TensorIterator>();
        // Opsets share most of their ops; the first entry of a type stays.
#define _OPENVINO_OP_REG(Op, space) follow<space::Op>();
#include <openvino/opsets/opset10_tbl.hpp>
#include <openvino/opsets/opset11_tbl.hpp>
#include <openvino/opsets/opset12_tbl.hpp>
#include <openvino/opsets/opset13_tbl.hpp>
#include <openvino/opsets/opset14_tbl.hpp>
#include <openvino/opsets/opset15_tbl.hpp>
#include <openvino/opsets/opset16_tbl.hpp>
#include <openvino/opsets/opset1_tbl.hpp>
#include <openvino/opsets/opset2_tbl.hpp>
#include <openvino/opsets/opset3_tbl.hpp>
#include <openvino/opsets/opset4_tbl.hpp>
#include <openvino/opsets/opset5_tbl.hpp>
#include <openvino/opsets/opset6_tbl.hpp>
#include <openvino/opsets/opset7_tbl.hpp>
#include <openvino/opsets/opset8_tbl.hpp>
#include <openvino/opsets/opset9_tbl.hpp>
#undef _OPENVINO_OP_REG
    }

    std::vector<ov::Extension::Ptr> all() const {
        std::vector<ov::Extension::Ptr> extensions;
        for (const auto& entry : m_of_type) extensions.push_back(entry.second);
        return extensions;
    }

private:
    template <class Kind, class... Ops>
    void add() {
        (m_of_type.emplace(Ops::get_type_info_static(), std::make_shared<Kind>(Ops::get_type_info_static())),
         ...);
    }

    template <class Op>
    void follow() {
        const auto& type = Op::get_type_info_static();
        if (m_of_type.count(type) != 0) return;
        // If, Loop and TensorIterator cannot be copied; they have got their entries.
        if constexpr (std::is_copy_constructible_v<Op>) {
            m_of_type.emplace(type, std::make_shared<ReadingFollowers>(type, &Follower<Op>::of));
        }
    }

    std::map<ov::DiscreteTypeInfo, ov::Extension::Ptr> m_of_type;
};

}  // namespace
}  // namespace ov_autoplace

OPENVINO_CREATE_EXTENSIONS(ov_autoplace::Extensions().all())
