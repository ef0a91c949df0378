// Runs a plan: submodels at once on lanes and devices.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "thread_pool.hpp"

namespace ov_autoplace::executor {

class Executor {
public:
    // Compiles the submodels. Throws ov::Exception in one sentence.
    Executor(Plan plan, const std::vector<Serialized>& files);
    ~Executor();

    // Runs the plan once; any number of threads may do so. Throws ov::Exception "submodel NAME on DEVICE:
    // reason", after which other runs are as good as before.
    void run(const ov::TensorVector& inputs, ov::TensorVector& outputs);

    const Plan& plan() const { return m_plan; }
    // The model that was compiled for a submodel.
    const ov::CompiledModel& model(size_t submodel) const { return m_compiled.models.at(submodel); }
    const std::vector<ov::element::Type>& data_types() const { return m_compiled.data_types; }
    const std::vector<ov::element::Type>& result_types() const { return m_compiled.result_types; }
    // Those of this process; a forked one has its own.
    ThreadPool& pool();

private:
    const Plan m_plan;
    const Compiled m_compiled;
    std::atomic<ThreadPool*> m_pool;
    std::atomic<unsigned> m_generation;
};

}  // namespace ov_autoplace::executor
