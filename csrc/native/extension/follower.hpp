// An op of an annotated model that looks after its neighbours: ops that are added next to it get a device.
#pragma once

#include <memory>
#include <openvino/core/node.hpp>

namespace ov_autoplace {

class FollowerBase {
public:
    static bool is_one(const ov::Node& op) { return dynamic_cast<const FollowerBase*>(&op) != nullptr; }

    // Whether `op` may have been added after the model was read, or made anew by a transformation, which may
    // have copied the annotation alone, both marks or none. Ops of types that are never followers count
    // as new too, because what lies behind them is seen through them only.
    static bool is_new(const ov::Node& op);

    // Whether `op` certainly was.
    static bool was_added(const ov::Node& op);

    // Ops of this type are made as followers when an annotated model is read.
    static void register_type(const ov::DiscreteTypeInfo& type);

protected:
    // Ops may have been added, moved or given other shapes around `op`.
    static void after_validation(ov::Node& op);

    // `clone` is a new copy of `original` that has its inputs, but none of the marks yet.
    static void after_cloning(const ov::Node& original, const ov::Node& clone);
};

// To transformations and plugins an op of type `Op` in every respect: it has Op's own type information.
template <class Op>
class Follower final : public Op, public FollowerBase {
public:
    // A follower with the inputs and attributes of `op`, which is an Op.
    static std::shared_ptr<ov::Node> of(const ov::Node& op) {
        return std::shared_ptr<ov::Node>(static_cast<ov::Node*>(new Follower(static_cast<const Op&>(op))));
    }

    void validate_and_infer_types() override {
        Op::validate_and_infer_types();
        // While it is made, an op has no marks.
        if (m_complete) after_validation(*this);
    }

    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override {
        const auto clone = of(*Op::clone_with_new_inputs(inputs));
        after_cloning(*this, *clone);
        return clone;
    }

private:
    explicit Follower(const Op& op) : Op(op) {
        this->constructor_validate_and_infer_types();
        m_complete = true;
    }

    bool m_complete = false;
};

}  // namespace ov_autoplace
