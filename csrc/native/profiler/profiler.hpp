// Compiles models on the devices of this machine and runs them; profiler_api.h is how others ask for it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <openvino/runtime/core.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ov_autoplace {

using StringMap = std::map<std::string, std::string>;

// What a device, or OpenVINO on its behalf, refused or failed to do.
class ProfilerError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// One node of a compiled model, see ov_autoplace_node.
struct NodeTime {
    std::string name;
    int subgraph = 0;
    std::string type;
    std::string exec_type;
    const char* status = "";
    std::vector<std::string> original_names;
    std::vector<std::string> consumers;
    std::string layout;
    std::string precision;
    double seconds = 0;
};

// A compiled model with infer requests that have valid inputs.
class Executable {
public:
    // One of the shapes in which a model is called.
    struct Call {
        std::map<std::string, std::vector<std::size_t>> shapes;  // by Parameter name
        double times = 1;                                        // how often it comes, beside the others
        std::set<std::string> growing;  // Parameters whose second dimension is one more with each time
    };
    // The same, with data.
    struct CallData {
        std::vector<ov::Tensor> tensors;  // of each Parameter, as large as it becomes
        std::vector<bool> grows;
        double times = 1;
        std::size_t repeats = 1;  // whole times
    };
    using Calls = std::vector<CallData>;

    // One of its requests: what has to be done for one inference, or for all calls of a sequence.
    class Request {
    public:
        Request(ov::InferRequest request, bool has_state, std::shared_ptr<const Calls> calls)
            : m_request(std::move(request)), m_calls(std::move(calls)), m_has_state(has_state) {}

        void infer();
        void start();
        // What infer() takes, in seconds; of calls that come often a few are run.
        double timed();
        ov::InferRequest& request() { return m_request; }

    private:
        // A cache of keys and values would grow from run to run, and the work with it.
        void forget() {
            if (m_has_state) m_request.reset_state();
        }
        void give(const CallData& call, std::size_t repeat);

        ov::InferRequest m_request;
        std::shared_ptr<const Calls> m_calls;  // null for a model of static shapes
        bool m_has_state;
    };

    struct Inputs {
        // Exclusive upper bound of integer inputs by Parameter name; others take kDefaultInputHigh.
        std::map<std::string, std::int64_t> high;
        std::uint64_t seed = 0;
        // What an inference consists of, one after the other; empty for a model of static shapes.
        std::vector<Call> calls;
    };
    static constexpr std::int64_t kDefaultInputHigh = 2;

    // `model` is what was compiled: its Parameters name the inputs.
    Executable(const ov::Model& model, ov::CompiledModel compiled, const Inputs& inputs,
               double compile_seconds);

    // Seconds per inference, the mean of `inferences` of them, each after a pause if there is one.
    double sample(std::size_t inferences, bool asynchronous, double pause_seconds);

    // Keeps what the last inference of the first request computed in a file, see outputs.hpp.
    void save_outputs(const std::string& path);

    // Per-node times; all zero unless compiled with PERF_COUNT.
    std::vector<NodeTime> node_times();

    // When each submodel of the last inference ran, and on which lane, as JSON; see schedule_api.h. Throws
    // ProfilerError where the model does not run on lanes.
    std::string lane_profile() const;
    // By which name the extension knows the op that runs them.
    void set_lane_op(std::string op) { m_lane_op = std::move(op); }

    // Number of submodels that HETERO made; 1 on a plain device.
    std::size_t subgraphs() const { return m_subgraphs; }
    double compile_seconds() const { return m_compile_seconds; }
    const std::vector<std::string>& execution_devices() const { return m_execution_devices; }
    // How many requests the device wants to be in flight for its best rate, 1 where it does not say.
    std::size_t optimal_requests() const { return m_optimal_requests; }

    // Its i-th request, made with a copy of the first one's inputs where there is none yet; stays where it
    // is.
    Request& request(std::size_t i);

private:
    ov::CompiledModel m_compiled;
    std::deque<Request> m_requests;  // at least one
    std::shared_ptr<const Calls> m_calls;
    bool m_has_state = false;
    double m_compile_seconds;
    std::size_t m_subgraphs = 1;
    std::size_t m_optimal_requests = 1;
    bool m_is_hetero = false;
    std::set<std::string> m_names_with_commas;
    std::vector<std::string> m_execution_devices;
    std::string m_lane_op;  // empty where there are none
};

// How a model is run one op after the other, see ov_autoplace_op_by_op.
struct OpByOp {
    bool evaluate = true;
    bool compile = true;
    double seconds = 30;
    std::size_t disturbed = 0;
    double noise = 0;
};

// Called before each op; throws to stop it all.
using Checkpoint = std::function<void()>;

// Owner of an ov::Core that has the same devices and settings as the caller's.
class Profiler {
public:
    // `plugins` holds (device name, plugin library) pairs; names that the Core knows already are skipped.
    // `device_properties` holds the settings of each device.
    Profiler(const std::vector<std::pair<std::string, std::string>>& plugins,
             const std::map<std::string, StringMap>& device_properties);

    // Lets the Core read models with the ops of a library; a second call with the same path does nothing. The
    // package's own library is told of the plugins that this Core knows.
    void add_extension(const std::string& path);

    // Reads the IR at `xml_path` and compiles it for `device`. With `affinities`, which must name every
    // top-level op, `device` is HETERO with or without a list. `weights_path`, if any, is the IR of a model
    // that is one Constant: the weights of a model on lanes, which has something that stands for them.
    std::unique_ptr<Executable> compile(const std::string& xml_path, const std::string& device,
                                        const StringMap& properties, const StringMap* affinities,
                                        const Executable::Inputs& inputs, const std::string& weights_path);

    // Runs the IR at `xml_path` op by op, with the inputs that an Executable has, and keeps the outputs of
    // each run in a file: first the undisturbed one.
    void run_op_by_op(const std::string& xml_path, const Executable::Inputs& inputs, const OpByOp& how,
                      const std::vector<std::string>& paths, const Checkpoint& checkpoint);

private:
    ov::AnyMap config_for(const std::string& device, const StringMap& properties) const;

    ov::Core m_core;
    std::vector<std::pair<std::string, std::string>> m_plugins;
    std::set<std::string> m_extensions;
    bool m_has_lanes = false;    // that its Core knows the op that runs submodels
    std::size_t m_lane_ops = 0;  // so many were given names
    std::map<std::string, ov::AnyMap> m_device_properties;
};

// The outputs of each run, the undisturbed one first. Throws ProfilerError where it cannot be done or not in
// time.
std::vector<std::vector<ov::Tensor>> run_op_by_op(ov::Core& core, const ov::Model& model,
                                                  const std::vector<ov::Tensor>& inputs, const OpByOp& how,
                                                  const Checkpoint& checkpoint);

}  // namespace ov_autoplace
