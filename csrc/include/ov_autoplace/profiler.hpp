// Measures models on the devices of this machine, from C++, so that the interpreter is not part of the
// measurement.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <openvino/runtime/core.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ov_autoplace/checkpoint.hpp"
#include "ov_autoplace/outputs.hpp"
#include "ov_autoplace/profiler_error.hpp"
#include "ov_autoplace/race.hpp"

namespace ov_autoplace {

using StringMap = std::map<std::string, std::string>;

// One node of a compiled model, as the device ran it.
struct NodeTime {
    std::string name;
    int subgraph = 0;  // index of HETERO's submodel; 0 on a plain device
    std::string type;
    std::string exec_type;                    // kernel and precision, in the plugin's own words
    std::string status;                       // EXECUTED, NOT_RUN or OPTIMIZED_OUT
    std::vector<std::string> original_names;  // ops of the model that the node stands for
    std::vector<std::string> consumers;       // nodes that read its results
    std::string layout;                       // memory layout of the first result, in the plugin's own words
    std::string precision;                    // element type of the first result
    double seconds = 0;  // mean over every inference of the compiled model, cold ones included
};

// A compiled model with infer requests that have valid inputs, ready to be timed.
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

    // Seconds per inference of each of `samples` samples, after `warmup` untimed inferences. A sample is the
    // mean of `inferences` inferences between two readings of the clock: more than one where an
    // inference is so short that the clock would be part of the result.
    std::vector<double> run(std::size_t samples, std::size_t warmup, bool asynchronous,
                            std::size_t inferences, const Checkpoint& checkpoint);

    // Seconds per inference, the mean of `inferences` of them; the machine idles for so long before each, so
    // that threads have gone to sleep and caches are cold, as they are where requests arrive now and then.
    double sample_after_pauses(std::size_t inferences, double pause_seconds);

    // Keeps what the last inference of run() computed in a file, see outputs.hpp; of a new one where there
    // was none, or where it is to be made anew.
    void save_outputs(const std::string& path, bool anew);
    // Whether run() has run it, so that it is warm.
    bool has_run() const { return m_has_run; }

    // Per-node times; all zero unless compiled with PERF_COUNT.
    std::vector<NodeTime> node_times();

    // When each submodel of the last inference ran, and on which lane, as JSON; see schedule_api.h of the
    // extension. Throws ProfilerError where the model does not run on lanes.
    std::string lane_profile() const;

    // What asks the extension about an op, by its friendly name.
    using LaneProfile = std::size_t (*)(const char* op, char* buffer, std::size_t size);
    void ask_about_lanes(std::string op, LaneProfile profile);

    // Number of submodels that HETERO made; 1 on a plain device.
    std::size_t subgraphs() const { return m_subgraphs; }
    double compile_seconds() const { return m_compile_seconds; }
    const std::vector<std::string>& execution_devices() const { return m_execution_devices; }
    // How many requests the device wants to be in flight for its best rate, 1 where it does not say.
    std::size_t optimal_requests() const { return m_optimal_requests; }

    // Held by whoever uses requests of this executable: one user at a time.
    std::unique_lock<std::mutex> lock() const { return std::unique_lock(*m_mutex); }
    // Its i-th request, made with a copy of the first one's inputs where there is none yet; under lock().
    Request request(std::size_t i);

private:
    double sample(std::size_t inferences, bool asynchronous);

    ov::CompiledModel m_compiled;
    ov::InferRequest m_request;
    std::vector<ov::InferRequest> m_more_requests;
    std::unique_ptr<std::mutex> m_mutex = std::make_unique<std::mutex>();
    std::shared_ptr<const Calls> m_calls;
    bool m_has_state = false;
    bool m_has_run = false;
    double m_compile_seconds;
    std::size_t m_subgraphs = 1;
    std::size_t m_optimal_requests = 1;
    bool m_is_hetero = false;
    std::set<std::string> m_names_with_commas;
    std::vector<std::string> m_execution_devices;
    std::string m_lane_op;
    LaneProfile m_lane_profile = nullptr;
};

// After a switch the processor's caches hold the data of another candidate. With samples of 0.2 ms, six
// copies of one model of 0.04 ms on one device differed by up to 12 %; with 1 ms and with 5 ms by 1 to 3 %.
inline constexpr double kMinSampleSeconds = 1e-3;

// Inferences of a sample with pauses: what waking a thread takes varies by more than the clock costs.
inline constexpr std::size_t kPausedInferences = 2;

struct SampleOptions {
    // A sample of a short model is the mean of as many inferences as fill this, so that the clock and the
    // switch between candidates stay small beside it.
    double min_seconds = kMinSampleSeconds;
    // Before every inference; with pauses, a sample is the mean of kPausedInferences.
    double pause_seconds = 0.0;
};

// Races executables: each is warmed up, then sampled in turns. Each candidate's index is written to
// `current`, if there is one, before it runs: where that is memory of another process too, it tells who was
// running when this one died.
RaceResult race(const std::vector<std::shared_ptr<Executable>>& executables, const RaceOptions& options,
                const SampleOptions& sampling, const RaceCheckpoint& checkpoint,
                volatile std::int64_t* current = nullptr);

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
    // that is one Constant: the weights of a model on lanes, which has something that stands for them. Throws
    // ProfilerError.
    std::shared_ptr<Executable> compile(const std::string& xml_path, const std::string& device,
                                        const StringMap& properties, const StringMap* affinities,
                                        const Executable::Inputs& inputs, const std::string& weights_path);

    // Runs the IR at `xml_path` op by op, with the inputs that an Executable has, and keeps its outputs in a
    // file. Returns how far each output of the disturbed runs is from those, at most.
    std::vector<double> save_op_by_op(const std::string& xml_path, const std::string& path,
                                      const Executable::Inputs& inputs, const OpByOp& how, double smallest,
                                      const Checkpoint& checkpoint);

private:
    ov::AnyMap config_for(const std::string& device, const StringMap& properties) const;

    ov::Core m_core;
    std::vector<std::pair<std::string, std::string>> m_plugins;
    std::set<std::string> m_extensions;
    Executable::LaneProfile m_lane_profile = nullptr;
    std::size_t m_lane_ops = 0;  // so many were given names
    std::map<std::string, ov::AnyMap> m_device_properties;
};

}  // namespace ov_autoplace
