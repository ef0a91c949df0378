// Measures models at once from many threads, as an application's race does, one of which fails:
//
//     workloads WAY libov_autoplace_extension.so scheduled.xml whole.xml failing.xml
//
// The files are those of schedules.cpp; `failing.xml` is given inputs with which it always fails. The program
// fails unless every request is counted, every failure is told, and what failed keeps nobody else from
// running.
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <openvino/runtime/core.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ov_autoplace/failure.hpp"
#include "ov_autoplace/load.hpp"
#include "ov_autoplace/workload.hpp"

namespace {

using ov_autoplace::Executable;
using Models = std::vector<std::shared_ptr<Executable>>;

constexpr std::size_t threads = 8;
constexpr double seconds = 0.05;

void expect(bool is_so, const std::string& what) {
    if (!is_so) throw std::runtime_error(what);
}

// Models that are compiled on one profiler.
struct Compiled {
    Models copies;  // of one model
    std::shared_ptr<Executable> lanes, failing;

    explicit Compiled(const std::vector<std::string>& files) {
        const ov_autoplace::StringMap in_caller = {
            {"INFERENCE_NUM_THREADS", "1"}, {"NUM_STREAMS", "0"}, {"INFERENCE_PRECISION_HINT", "f32"}};
        ov_autoplace::Profiler profiler({files[0]}, {}, {});
        const auto compile = [&](const std::string& file,
                                 const std::map<std::string, std::int64_t>& high = {}) {
            return profiler.compile({file, "CPU", in_caller, nullptr, "", {files[0]}, high, 0, {}});
        };
        lanes = compile(files[1]);
        for (int i = 0; i < 3; ++i) copies.push_back(compile(files[2]));
        std::map<std::string, std::int64_t> beyond;  // an index that is below 4 with a probability of 1e-8
        ov::Core core;
        core.add_extension(files[0]);
        const auto model = core.read_model(files[3]);
        for (const auto& input : model->get_parameters()) {
            beyond[input->get_friendly_name()] = 1'000'000'000;
        }
        failing = compile(files[3], beyond);
    }
};

// Runs `work` in eight threads at once, each with its number; the first failure is thrown.
void at_once(const std::function<void(std::size_t)>& work) {
    ov_autoplace::Failure failure;
    std::vector<std::thread> workers;
    for (std::size_t i = 0; i < threads; ++i) {
        workers.emplace_back([&, i] {
            try {
                work(i);
            } catch (...) {
                failure.keep(std::current_exception());
            }
        });
    }
    for (auto& worker : workers) worker.join();
    failure.rethrow();
}

void expect_failure(const std::function<void()>& work) {
    try {
        work();
    } catch (const ov_autoplace::ProfilerError& error) {
        expect(std::string(error.what()).find("indices") != std::string::npos, error.what());
        return;
    }
    throw std::runtime_error("a failure is lost");
}

// An application of three models: a closed loop, requests that arrive, and a chain; the last model may fail.
ov_autoplace::Workload application(const Compiled& compiled, bool fails, bool in_turn) {
    ov_autoplace::Workload workload;
    workload.models = {compiled.copies, {compiled.lanes}, fails ? Models{compiled.failing} : compiled.copies};
    workload.links = {{0, 2, 0.5}};
    workload.sources = {{0, 3, false, {}}, {1, 2, true, {0, 0, 0.01, 0.02, 0.02, 0.04}}};
    workload.in_turn = in_turn;
    return workload;
}

void run_whole(const Compiled& compiled, bool in_turn) {
    const auto outcome = ov_autoplace::run_workload(application(compiled, false, in_turn), seconds, true);
    const auto finished = outcome.sources[0].latencies.size();
    expect(finished >= ov_autoplace::kFewestOfACaller, "a closed loop ends too soon");
    expect(outcome.sources[1].latencies.size() == 6, "a request is lost");
    expect(outcome.models[0].inferences == finished, "an inference is not counted");
    expect(outcome.models[2].inferences > 0, "a chain is not followed");
    expect(!outcome.spans.empty(), "there are no spans");
}

// One application after the other, whose callers are many threads.
void workload(const Compiled& compiled) {
    for (int i = 0; i < 6; ++i) {
        run_whole(compiled, i % 2 != 0);
        expect_failure(
            [&] { ov_autoplace::run_workload(application(compiled, true, i % 2 != 0), seconds, false); });
    }
}

// Pools of copies that are loaded and applications that run, of the same compiled models, all at once.
void shared(const Compiled& compiled) {
    const auto member = [](std::shared_ptr<Executable> model) { return Models{std::move(model)}; };
    at_once([&](std::size_t thread) {
        for (std::size_t i = 0; i < 8; ++i) {
            const bool other = (thread + i) % 2 != 0;
            switch ((thread + i) % 4) {
                case 0:
                    run_whole(compiled, thread % 2 != 0);
                    break;
                case 1:
                    expect_failure([&] {
                        ov_autoplace::load_seconds({member(compiled.failing), 3, thread % 2 != 0}, 0.01);
                    });
                    break;
                case 2:
                    expect(ov_autoplace::load_seconds({compiled.copies, threads, thread % 2 != 0}, 0.01) > 0,
                           "a load takes no time");
                    break;
                default:
                    expect_failure(
                        [&] { ov_autoplace::run_workload(application(compiled, true, other), 0.01, true); });
            }
        }
    });
}

int run(const std::vector<std::string>& arguments) {
    const std::map<std::string, std::function<void(const Compiled&)>> ways = {{"workload", workload},
                                                                              {"shared", shared}};
    if (arguments.size() != 5 || ways.count(arguments[0]) == 0) {
        std::cerr
            << "usage: workloads WAY libov_autoplace_extension.so scheduled.xml whole.xml failing.xml\n";
        return 2;
    }
    ways.at(arguments[0])(Compiled({arguments.begin() + 1, arguments.end()}));
    return 0;
}

}  // namespace

int main(int argc, char* argv[]) {
    try {
        return run({argv + 1, argv + argc});
    } catch (const std::exception& error) {
        std::cerr << "workloads: " << error.what() << "\n";
        return 1;
    }
}
