// Measures models on the devices of this machine, from C++, so that the interpreter is not part of the
// measurement. OpenVINO itself is asked by the native part.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ov_autoplace/checkpoint.hpp"
#include "ov_autoplace/native_part.hpp"
#include "ov_autoplace/profiler_error.hpp"
#include "ov_autoplace/race.hpp"

namespace ov_autoplace {

using StringMap = std::map<std::string, std::string>;

// One node of a compiled model, as the device ran it; see ov_autoplace_node.
struct NodeTime {
    std::string name;
    int subgraph = 0;
    std::string type;
    std::string exec_type;
    std::string status;
    std::vector<std::string> original_names;
    std::vector<std::string> consumers;
    std::string layout;
    std::string precision;
    double seconds = 0;
};

// What a model is compiled from and gets as its inputs; see ov_autoplace_recipe.
struct Recipe {
    // One of the shapes in which a model is called.
    struct Call {
        std::map<std::string, std::vector<std::size_t>> shapes;  // by Parameter name
        double times = 1;                                        // how often it comes, beside the others
        std::vector<std::string> growing;  // Parameters whose second dimension is one more with each time
    };

    std::string xml_path;
    std::string device;
    StringMap properties;
    const StringMap* affinities = nullptr;  // must name every top-level op; for HETERO with or without a list
    std::string weights_path;               // of a model on lanes, or empty
    std::vector<std::string> extensions;
    std::map<std::string, std::int64_t> input_high;  // exclusive upper bound of integer inputs; 2 for others
    std::uint64_t seed = 0;
    std::vector<Call> calls;  // what an inference consists of; empty for a model of static shapes
};

// How a model is run one op after the other; see ov_autoplace_op_by_op.
struct OpByOp {
    bool evaluate = true;
    bool compile = true;
    double seconds = 30;
    std::size_t disturbed = 0;
    double noise = 0;
};

// Owner of an ov::Core, as the native part has it.
struct NativeProfiler {
    explicit NativeProfiler(const std::vector<std::string>& libraries) : part(libraries) {}
    ~NativeProfiler() { part.profiler_free(profiler); }
    NativeProfiler(const NativeProfiler&) = delete;
    NativeProfiler& operator=(const NativeProfiler&) = delete;

    const NativePart part;
    ov_autoplace_profiler* profiler = nullptr;
};

// A compiled model with infer requests that have valid inputs, ready to be timed.
class Executable {
public:
    // One of its requests: what has to be done for one inference, or for all calls of a sequence.
    class Request {
    public:
        Request(const NativePart& part, ov_autoplace_request* request) : m_part(&part), m_request(request) {}

        void infer() { m_part->check(m_part->infer(m_request)); }
        void start() { m_part->check(m_part->start(m_request)); }
        void wait() { m_part->check(m_part->wait(m_request)); }
        // `ended` gets null, or what went wrong; without it nobody is told any more.
        void on_end(void (*ended)(void* context, const char* error), void* context) {
            m_part->check(m_part->on_end(m_request, ended, context));
        }

    private:
        const NativePart* m_part;
        ov_autoplace_request* m_request;
    };

    Executable(std::shared_ptr<NativeProfiler> profiler, ov_autoplace_model* model);

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
    std::string lane_profile();

    // Number of submodels that HETERO made; 1 on a plain device.
    std::size_t subgraphs() const { return m_facts.subgraphs; }
    double compile_seconds() const { return m_facts.compile_seconds; }
    const std::vector<std::string>& execution_devices() const { return m_execution_devices; }
    // How many requests the device wants to be in flight for its best rate, 1 where it does not say.
    std::size_t optimal_requests() const { return m_facts.optimal_requests; }

    // Held by whoever uses requests of this executable: one user at a time.
    std::unique_lock<std::mutex> lock() { return std::unique_lock(m_mutex); }
    // Its i-th request, made with a copy of the first one's inputs where there is none yet; under lock().
    Request request(std::size_t i);

private:
    double sample(std::size_t inferences, bool asynchronous);
    const NativePart& part() const { return m_profiler->part; }

    std::shared_ptr<NativeProfiler> m_profiler;
    std::unique_ptr<ov_autoplace_model, decltype(&ov_autoplace_model_free)> m_model;
    ov_autoplace_facts m_facts{};
    std::vector<std::string> m_execution_devices;
    std::mutex m_mutex;
    bool m_has_run = false;
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

// Compiles models on an ov::Core that has the same devices and settings as the caller's.
class Profiler {
public:
    // `libraries` are OpenVINO's own and the native part for its release, see NativePart. `plugins` holds
    // (device name, plugin library) pairs; names that the Core knows already are skipped. `device_properties`
    // holds the settings of each device. Throws ProfilerError, like all that follows.
    Profiler(const std::vector<std::string>& libraries,
             const std::vector<std::pair<std::string, std::string>>& plugins,
             const std::map<std::string, StringMap>& device_properties);

    std::shared_ptr<Executable> compile(const Recipe& recipe);

    // Runs a model op by op, with the inputs that an Executable has, and keeps its outputs in the file
    // `path`. Returns how far each output of the disturbed runs is from those, at most.
    std::vector<double> save_op_by_op(const Recipe& recipe, const std::string& path, const OpByOp& how,
                                      double smallest, const Checkpoint& checkpoint);

private:
    std::shared_ptr<NativeProfiler> m_native;
};

}  // namespace ov_autoplace
