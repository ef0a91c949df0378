// A library with one op, Doubled, whose result is twice its input: for tests of models with ops of others.
#include <algorithm>
#include <memory>
#include <openvino/core/extension.hpp>
#include <openvino/core/op_extension.hpp>
#include <openvino/op/op.hpp>
#include <vector>

namespace {

class Doubled : public ov::op::Op {
public:
    OPENVINO_OP("Doubled", "tests");

    Doubled() = default;
    explicit Doubled(const ov::Output<ov::Node>& value) : Op({value}) {
        constructor_validate_and_infer_types();
    }

    void validate_and_infer_types() override {
        set_output_type(0, get_input_element_type(0), get_input_partial_shape(0));
    }

    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override {
        return std::make_shared<Doubled>(inputs.at(0));
    }

    bool visit_attributes(ov::AttributeVisitor&) override {
        return true;
    }

    bool has_evaluate() const override {
        return true;
    }

    bool evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const override {
        const float* const first = inputs[0].data<const float>();
        outputs[0].set_shape(inputs[0].get_shape());
        std::transform(first, first + inputs[0].get_size(), outputs[0].data<float>(),
                       [](float value) { return 2.0F * value; });
        return true;
    }
};

}  // namespace

OPENVINO_CREATE_EXTENSIONS(
    std::vector<ov::Extension::Ptr>({std::make_shared<ov::OpExtension<Doubled>>()}));
