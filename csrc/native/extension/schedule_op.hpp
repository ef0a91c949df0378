// The op autoplace::Schedule: submodels that run at once on lanes and devices, in any OpenVINO program.
//
// Its attributes and inputs are described in schedule_api.h.
#pragma once

#include <atomic>
#include <memory>
#include <openvino/op/op.hpp>

#include "../executor/executor.hpp"
#include "schedule_text.hpp"

namespace ov_autoplace {

class ScheduleOp : public ov::op::Op {
public:
    OPENVINO_OP("Schedule", "autoplace");

    ScheduleOp();

    void validate_and_infer_types() override;
    bool visit_attributes(ov::AttributeVisitor& visitor) override;
    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override;
    // Plugins ask when they build what runs the op: the submodels are compiled then, once for all clones.
    bool has_evaluate() const override;
    bool evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const override;
    // Its submodels may be constants to OpenVINO, but running them is not to be done in advance.
    bool can_constant_fold(const ov::OutputVector& inputs) const override;

private:
    struct Shared;

    executor::Executor& executor() const;
    std::vector<executor::Serialized> files() const;
    void check_types(const executor::Executor& executor) const;

    ScheduleAttributes m_attributes;
    std::shared_ptr<const Schedule> m_schedule;
    std::shared_ptr<Shared> m_shared;
    // This op's hold on what all clones share; the second is the same for those who need no lock.
    mutable std::shared_ptr<executor::Executor> m_executor;
    mutable std::atomic<executor::Executor*> m_ready{nullptr};
};

}  // namespace ov_autoplace
