// What one run of a plan at a time needs: a request for each submodel, whose tensors are connected once.
#pragma once

#include <chrono>
#include <openvino/runtime/infer_request.hpp>
#include <vector>

#include "dispatch.hpp"
#include "semaphore.hpp"
#include "submodels.hpp"

namespace ov_autoplace::executor {

using Clock = std::chrono::steady_clock;

// When and on which lane a submodel ran. Threads that write two of them do not wait for each other.
struct alignas(64) Stay {
    size_t lane = 0;
    Clock::time_point start, finish;
};

class Context {
public:
    Context(const Plan& plan, const Order& order, Occupancy& occupancy, const Compiled& compiled);

    // Makes the requests read the plan's inputs and write its outputs; only what changed is set. The tensors
    // are the caller's, and nothing here keeps them.
    void bind(const ov::TensorVector& inputs, ov::TensorVector& outputs);
    // Whether these are the tensors of the run before, so that nothing has to be set.
    bool is_bound_to(const ov::TensorVector& inputs, const ov::TensorVector& outputs) const;
    // Runs a submodel in this thread.
    void infer(size_t submodel, size_t lane);
    // Copies the outputs that no request wrote in place, some of which are inputs.
    void collect(const ov::TensorVector& inputs, ov::TensorVector& outputs);

    std::vector<ov::ProfilingInfo> profile(size_t submodel) const;
    const Stay& stay(size_t submodel) const { return m_stays[submodel]; }

    Dispatch dispatch;
    // Where the thread that called for the run waits.
    Semaphore caller;
    // Whether the run shall be helped, even if a thread has to be woken for it.
    bool wants_help = false;
    // The context that was made before; contexts are never removed while somebody looks for work.
    Context* next = nullptr;

private:
    // A tensor that was set, as far as it matters for setting it again.
    struct Bound {
        const void* data = nullptr;
        ov::Shape shape;
        bool is(const ov::Tensor& tensor) const;
        void set(const ov::Tensor& tensor);
    };
    struct Port {
        size_t submodel, port;
    };
    // An output whose shape is not fixed, as the last run left it.
    struct Loose {
        size_t port;
        ov::element::Type type;
        ov::Shape shape;
        const void* data = nullptr;
    };
    // An input that reads such an output and is connected anew for each run.
    struct Link {
        size_t port, submodel, loose;
    };
    void connect(const Plan& plan, const Compiled& compiled);
    size_t loose_output(const Source& source, const ov::element::Type& type);
    void choose_results_in_place(const Plan& plan, const Compiled& compiled);

    std::vector<ov::InferRequest> m_requests;
    std::vector<Stay> m_stays;
    std::vector<std::vector<Link>> m_links;
    std::vector<std::vector<Loose>> m_loose;
    // Who reads each data input, and each result that is written in place.
    std::vector<std::vector<Port>> m_data_readers, m_result_readers;
    std::vector<Bound> m_data_bound, m_results_bound;
    const std::vector<Source>& m_results;
    const std::vector<ov::PartialShape>& m_promised;
    // For each output of the plan, its shape if the request writes it in place.
    std::vector<bool> m_in_place;
    std::vector<ov::Shape> m_result_shapes;
};

}  // namespace ov_autoplace::executor
