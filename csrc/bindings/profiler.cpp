// Python's view of the profiler and the race: conversions, the GIL and signals; nothing is measured here.
#include "ov_autoplace/profiler.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <sys/prctl.h>

#include <csignal>
#include <optional>

#include "arrays.hpp"
#include "ov_autoplace/load.hpp"
#include "ov_autoplace/outputs.hpp"
#include "ov_autoplace/race.hpp"
#include "ov_autoplace/resident_bytes.hpp"
#include "ov_autoplace/workload.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ov_autoplace;
using namespace ov_autoplace::bindings;

namespace {

using PyProgress = std::optional<std::function<void(std::size_t, std::size_t, double)>>;

// Without NumPy, which the process that measures for another one does without: it starts sooner.
nb::bytes to_bytes(const std::vector<double>& values) {
    return nb::bytes(values.data(), values.size() * sizeof(double));
}

// Where a race notes which candidate runs: one number in writable memory.
using Current = nb::ndarray<std::int64_t, nb::shape<1>, nb::c_contig, nb::device::cpu>;

// Lets Ctrl-C through: the exception it raises travels through the core like any other.
void check_signals() {
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) {
        throw nb::python_error();
    }
}

RaceCheckpoint race_checkpoint(const PyProgress& progress) {
    return [&progress](const RaceProgress& state) {
        check_signals();
        if (progress) {
            nb::gil_scoped_acquire gil;
            (*progress)(state.rounds, state.running, state.seconds);
        }
    };
}

RaceOptions race_options(double budget_seconds, std::size_t min_rounds, std::size_t max_rounds,
                         double confidence, double margin, std::uint64_t seed) {
    RaceOptions options;
    options.budget_seconds = budget_seconds;
    options.min_rounds = min_rounds;
    options.max_rounds = max_rounds;
    options.confidence = confidence;
    options.margin = margin;
    options.seed = seed;
    return options;
}

void bind_race(nb::module_& m) {
    nb::class_<RaceEntry>(m, "RaceEntry", "What one candidate of a race did.")
        .def_prop_ro(
            "samples", [](const RaceEntry& entry) { return to_numpy(std::vector<double>(entry.samples)); },
            nb::rv_policy::automatic, "Seconds per inference in each round that it ran in, float64[n].")
        .def_prop_ro(
            "sample_bytes", [](const RaceEntry& entry) { return to_bytes(entry.samples); },
            "The samples as the bytes of their doubles.")
        .def_ro("dropped", &RaceEntry::dropped, "Why it left the race; empty if it stayed to the end.");
    nb::class_<RaceResult>(m, "RaceResult", "Outcome of a race.")
        .def_ro("entries", &RaceResult::entries, "One RaceEntry per candidate, in the order given.")
        .def_ro("best", &RaceResult::best, "Candidate with the lowest median of those that stayed.")
        .def_ro("rounds", &RaceResult::rounds)
        .def_ro("seconds", &RaceResult::seconds, "How long the race took.")
        .def_ro("stopped", &RaceResult::stopped, "What ended it: 'budget', 'one left' or 'max rounds'.");

    m.def(
        "race_samplers",
        [](const std::vector<std::function<double()>>& samplers, double budget_seconds,
           std::size_t min_rounds, std::size_t max_rounds, double confidence, double margin,
           std::uint64_t seed, const std::vector<std::string>& names) {
            for (std::size_t candidate = 0; candidate < samplers.size(); ++candidate) {
                if (samplers[candidate]) continue;
                throw std::invalid_argument("candidate " + std::to_string(candidate) +
                                            " of the race is None");
            }
            RaceOptions options =
                race_options(budget_seconds, min_rounds, max_rounds, confidence, margin, seed);
            options.names = names;
            return race(
                samplers.size(), [&](std::size_t candidate) { return samplers[candidate](); }, options,
                [](const RaceProgress&) { check_signals(); });
        },
        "samplers"_a, "budget_seconds"_a, nb::kw_only(), "min_rounds"_a = RaceOptions{}.min_rounds,
        "max_rounds"_a = RaceOptions{}.max_rounds, "confidence"_a = RaceOptions{}.confidence,
        "margin"_a = RaceOptions{}.margin, "seed"_a = RaceOptions{}.seed,
        "names"_a = std::vector<std::string>{},
        "Races callables, each of which runs its candidate once and returns its seconds.");
    m.def("log_evidence_slower", &log_evidence_slower, "losses"_a, "wins"_a,
          "Logarithm of the e-value of 'slower in more than half of the rounds' after so many losses and "
          "wins.");
}

// (members, requests, asynchronous)
using PyLoad = std::tuple<std::vector<std::shared_ptr<Executable>>, std::size_t, bool>;

void bind_loads(nb::module_& m) {
    m.def(
        "load_seconds",
        [](const std::vector<std::shared_ptr<Executable>>& members, std::size_t requests, bool asynchronous,
           double seconds) {
            nb::gil_scoped_release release;
            return load_seconds({members, requests, asynchronous}, seconds);
        },
        "members"_a, "requests"_a, "asynchronous"_a, "seconds"_a = kLoadSampleSeconds,
        "Seconds per finished request while so many requests, made of the members in turns, are in flight: a "
        "thread each that calls infer(), or one thread that starts whichever is idle.");
    m.def(
        "race_loads",
        [](const std::vector<PyLoad>& given, double budget_seconds, std::size_t min_rounds,
           std::size_t max_rounds, double confidence, double margin, std::uint64_t seed,
           double sample_seconds, const PyProgress& progress, const std::vector<std::string>& names,
           const std::optional<Current>& current) {
            std::int64_t* const noted = current ? current->data() : nullptr;
            std::vector<Load> loads;
            for (const auto& [members, requests, asynchronous] : given) {
                loads.push_back({members, requests, asynchronous});
            }
            nb::gil_scoped_release release;
            RaceOptions options =
                race_options(budget_seconds, min_rounds, max_rounds, confidence, margin, seed);
            options.names = names;
            return race_loads(loads, options, sample_seconds, race_checkpoint(progress), noted);
        },
        "loads"_a, "budget_seconds"_a, nb::kw_only(), "min_rounds"_a = RaceOptions{}.min_rounds,
        "max_rounds"_a = RaceOptions{}.max_rounds, "confidence"_a = RaceOptions{}.confidence,
        "margin"_a = RaceOptions{}.margin, "seed"_a = RaceOptions{}.seed,
        "sample_seconds"_a = kLoadSampleSeconds, "progress"_a = nb::none(),
        "names"_a = std::vector<std::string>{}, "current"_a = nb::none(),
        "Runs loads, which are (members, requests, asynchronous), in turns as ``Profiler.race`` runs "
        "executables; samples are seconds per finished request.");
}

// (model, callers, whether it is open, arrivals)
using PySource = std::tuple<std::size_t, std::size_t, bool, std::vector<double>>;
// (from, to, times)
using PyLink = std::tuple<std::size_t, std::size_t, double>;

void bind_workload(nb::module_& m) {
    using Outcome = WorkloadOutcome;
    nb::class_<Outcome>(m, "WorkloadOutcome", "What an application did.")
        .def_prop_ro(
            "rates",
            [](const Outcome& outcome) {
                std::vector<double> rates;
                for (const auto& source : outcome.sources) rates.push_back(source.rate);
                return rates;
            },
            "Finished requests per second of each source.")
        .def_prop_ro(
            "latency_bytes",
            [](const Outcome& outcome) {
                std::vector<nb::bytes> bytes;
                for (const auto& source : outcome.sources) bytes.push_back(to_bytes(source.latencies));
                return bytes;
            },
            "Of each source, seconds of its requests from when they should have begun, as bytes of doubles.")
        .def_prop_ro(
            "models",
            [](const Outcome& outcome) {
                std::vector<std::pair<std::size_t, double>> models;
                for (const auto& model : outcome.models) {
                    models.emplace_back(model.inferences, model.busy_seconds);
                }
                return models;
            },
            "(inferences, seconds within them) of each model.")
        .def_prop_ro(
            "spans",
            [](const Outcome& outcome) {
                std::vector<std::tuple<std::size_t, std::size_t, double, double, int>> spans;
                for (const auto& span : outcome.spans) {
                    spans.emplace_back(span.model, span.caller, span.begin, span.end, span.processor);
                }
                return spans;
            },
            "(model, caller, begin, end, processor) of each inference.")
        .def_ro("seconds", &Outcome::seconds)
        .def_ro("cpu_seconds", &Outcome::cpu_seconds, "Of all threads of the process.");
    m.def(
        "run_workload",
        [](const std::vector<std::vector<std::shared_ptr<Executable>>>& models,
           const std::vector<PySource>& sources, const std::vector<PyLink>& links, double seconds,
           bool in_turn, bool spans) {
            Workload workload{models, {}, {}, in_turn};
            for (const auto& [from, to, times] : links) workload.links.push_back({from, to, times});
            for (const auto& [model, callers, is_open, arrivals] : sources) {
                workload.sources.push_back({model, callers, is_open, arrivals});
            }
            nb::gil_scoped_release release;
            return run_workload(workload, seconds, spans);
        },
        "models"_a, "sources"_a, "links"_a, "seconds"_a, "in_turn"_a = false, "spans"_a = false,
        "Runs several models at once, each of them copies: sources are (model, callers, whether it is open, "
        "arrivals) and begin requests, links are (from, to, times) and go on with them.");
}

// (shapes by input, times, inputs that grow)
using PyCall = std::tuple<std::map<std::string, std::vector<std::size_t>>, double, std::vector<std::string>>;

std::vector<double> run(Executable& executable, std::size_t runs, std::size_t warmup, bool asynchronous,
                        std::size_t inferences) {
    if (inferences < 1) {
        throw std::invalid_argument("a sample needs at least one inference");
    }
    nb::gil_scoped_release release;
    return executable.run(runs, warmup, asynchronous, inferences, check_signals);
}

void bind_executable(nb::module_& m) {
    nb::class_<NodeTime>(m, "NodeTime", "One node of a compiled model, as the device ran it.")
        .def_ro("name", &NodeTime::name)
        .def_ro("subgraph", &NodeTime::subgraph, "Index of HETERO's submodel; 0 on a plain device.")
        .def_ro("type", &NodeTime::type)
        .def_ro("exec_type", &NodeTime::exec_type, "Kernel and precision, in the plugin's words.")
        .def_ro("status", &NodeTime::status, "EXECUTED, NOT_RUN or OPTIMIZED_OUT.")
        .def_ro("original_names", &NodeTime::original_names, "Ops of the model that the node stands for.")
        .def_ro("consumers", &NodeTime::consumers, "Names of the nodes that read its results.")
        .def_ro("layout", &NodeTime::layout, "Memory layout of the first result, in the plugin's words.")
        .def_ro("precision", &NodeTime::precision, "Element type of the first result.")
        .def_ro("seconds", &NodeTime::seconds, "Mean over all inferences so far, cold ones included.");

    m.def(
        "output_differences", &output_differences, nb::call_guard<nb::gil_scoped_release>(), "path"_a,
        "other"_a, "smallest"_a,
        "How far each output in a file of `save_outputs` is from that in another one, from 0 to 2: the "
        "largest difference over the largest magnitude, and at least `smallest`; of integers the share that "
        "differs.");
    nb::class_<Executable>(m, "Executable", nb::is_weak_referenceable(),
                           "A compiled model with valid inputs, ready to be timed.")
        .def(
            "run",
            [](Executable& self, std::size_t runs, std::size_t warmup, bool asynchronous,
               std::size_t inferences) {
                return to_numpy(run(self, runs, warmup, asynchronous, inferences));
            },
            "runs"_a, "warmup"_a = 1, "asynchronous"_a = false, "inferences"_a = 1,
            "Seconds per inference of each run, float64[runs]; a run is the mean of `inferences` inferences.")
        .def(
            "run_bytes",
            [](Executable& self, std::size_t runs, std::size_t warmup, bool asynchronous,
               std::size_t inferences) {
                return to_bytes(run(self, runs, warmup, asynchronous, inferences));
            },
            "runs"_a, "warmup"_a, "asynchronous"_a, "inferences"_a,
            "What `run` gives, as the bytes of its doubles.")
        .def("save_outputs", &Executable::save_outputs, nb::call_guard<nb::gil_scoped_release>(), "path"_a,
             "anew"_a = false,
             "Keeps what its last inference computed in a file, or what a new one does where there was none.")
        .def("node_times", &Executable::node_times, nb::call_guard<nb::gil_scoped_release>(),
             "NodeTime of every node; all zero unless compiled with PERF_COUNT.")
        .def("lane_profile", &Executable::lane_profile, nb::call_guard<nb::gil_scoped_release>(),
             "JSON: when each submodel of the last inference ran, on which lane, and its nodes.")
        .def_prop_ro("subgraphs", &Executable::subgraphs, "Number of submodels that HETERO made, else 1.")
        .def_prop_ro("compile_seconds", &Executable::compile_seconds)
        .def_prop_ro("execution_devices", &Executable::execution_devices)
        .def_prop_ro("optimal_requests", &Executable::optimal_requests,
                     "How many requests in flight the device wants for its best rate.");
}

}  // namespace

void init_profiler(nb::module_& m) {
    nb::exception<ProfilerError>(m, "ProfilerError", PyExc_RuntimeError);
    bind_race(m);
    bind_executable(m);
    bind_loads(m);
    bind_workload(m);
    m.def(
        "die_with_parent", [] { return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0; },
        "Has the kernel kill this process when the thread that started it ends; whether it will.");
    nb::class_<Profiler>(m, "Profiler", "Compiles and times models on an ov::Core of its own.")
        .def(
            nb::init<const std::vector<std::string>&, const std::vector<std::pair<std::string, std::string>>&,
                     const std::map<std::string, StringMap>&>(),
            "libraries"_a, "plugins"_a, "device_properties"_a, nb::call_guard<nb::gil_scoped_release>(),
            "Opens the libraries, which are OpenVINO's own and the native part for its release, registers "
            "(device "
            "name, plugin library) pairs that are not known yet and sets each device's properties.")
        .def(
            "compile",
            [](Profiler& self, const std::string& xml_path, const std::string& device,
               const StringMap& properties, const std::optional<StringMap>& affinities,
               const std::map<std::string, std::int64_t>& input_high, std::uint64_t seed,
               const std::vector<std::string>& extensions, const std::string& weights_path,
               const std::vector<PyCall>& given) {
                nb::gil_scoped_release release;
                std::vector<Recipe::Call> calls;
                for (const auto& [shapes, times, growing] : given) calls.push_back({shapes, times, growing});
                return self.compile({xml_path, device, properties, affinities ? &*affinities : nullptr,
                                     weights_path, extensions, input_high, seed, calls});
            },
            "xml_path"_a, "device"_a, "properties"_a = StringMap{}, "affinities"_a = nb::none(),
            "input_high"_a = std::map<std::string, std::int64_t>{}, "seed"_a = 0,
            "extensions"_a = std::vector<std::string>{}, "weights_path"_a = "",
            "calls"_a = std::vector<PyCall>{},
            "Compiles an IR; `affinities` maps every op to its device, `input_high` bounds integer inputs, "
            "`extensions` are the libraries of ops that are not OpenVINO's own, `weights_path` the IR of a "
            "Constant with the weights of a model on lanes. `calls` are (shapes by input, times, inputs that "
            "grow): what an inference of a dynamic model consists of; its seconds are those of all calls.")
        .def(
            "save_op_by_op",
            [](Profiler& self, const std::string& xml_path, const std::string& path, double smallest,
               bool evaluate, bool compile, double seconds, std::size_t disturbed, double noise,
               const std::map<std::string, std::int64_t>& input_high, std::uint64_t seed,
               const std::vector<std::string>& extensions) {
                nb::gil_scoped_release release;
                const OpByOp how{evaluate, compile, seconds, disturbed, noise};
                const Recipe recipe{xml_path, "", {}, nullptr, "", extensions, input_high, seed, {}};
                return self.save_op_by_op(recipe, path, how, smallest, check_signals);
            },
            "xml_path"_a, "path"_a, "smallest"_a, nb::kw_only(), "evaluate"_a = OpByOp{}.evaluate,
            "compile"_a = OpByOp{}.compile, "limit_seconds"_a = OpByOp{}.seconds,
            "disturbed"_a = OpByOp{}.disturbed, "noise"_a = OpByOp{}.noise,
            "input_high"_a = std::map<std::string, std::int64_t>{}, "seed"_a = 0,
            "extensions"_a = std::vector<std::string>{},
            "Runs an IR op by op, on the inputs of `compile`, and keeps what it computes in a file; ops are "
            "evaluated by OpenVINO's reference implementation or compiled for the CPU, each alone. Gives how "
            "far `disturbed` runs with relative errors of `noise` after each op are from it, by output.")
        .def_static("resident_bytes", &resident_bytes, nb::call_guard<nb::gil_scoped_release>(),
                    "Memory of the process in which models are compiled, without code; 0 where nobody tells.")
        .def_static(
            "race",
            [](const std::vector<std::shared_ptr<Executable>>& executables, double budget_seconds,
               std::size_t min_rounds, std::size_t max_rounds, double confidence, double margin,
               std::uint64_t seed, double min_sample_seconds, double pause_seconds,
               const PyProgress& progress, const std::vector<std::string>& names,
               const std::optional<Current>& current) {
                std::int64_t* const noted = current ? current->data() : nullptr;
                nb::gil_scoped_release release;
                RaceOptions options =
                    race_options(budget_seconds, min_rounds, max_rounds, confidence, margin, seed);
                options.names = names;
                return race(executables, options, {min_sample_seconds, pause_seconds},
                            race_checkpoint(progress), noted);
            },
            "executables"_a, "budget_seconds"_a, nb::kw_only(), "min_rounds"_a = RaceOptions{}.min_rounds,
            "max_rounds"_a = RaceOptions{}.max_rounds, "confidence"_a = RaceOptions{}.confidence,
            "margin"_a = RaceOptions{}.margin, "seed"_a = RaceOptions{}.seed,
            "min_sample_seconds"_a = kMinSampleSeconds, "pause_seconds"_a = SampleOptions{}.pause_seconds,
            "progress"_a = nb::none(), "names"_a = std::vector<std::string>{}, "current"_a = nb::none(),
            "Runs the executables in turns, with pauses before each inference where some are given, and "
            "drops "
            "those that are certainly slower; `progress` is called with (rounds, candidates left, seconds) "
            "now and then, and `current[0]` is the candidate that runs.");
}
