// Uses a model with the op autoplace::Schedule in one of the ways that strain the library's threads:
//
//     schedules WAY libov_autoplace_extension.so scheduled.xml whole.xml failing.xml
//
// `whole.xml` is what `scheduled.xml` computes, without the op, from f32 inputs. `failing.xml` has inputs of
// f32 4 x 8 and i32 1 x 1, and fails where the latter is not 0 to 3. The program fails unless every answer is
// right and every failure is told.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <openvino/openvino.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using Values = std::vector<std::vector<float>>;

struct Files {
    std::string library, scheduled, whole, failing;
};

const ov::AnyMap in_f32 = {ov::hint::inference_precision(ov::element::f32)};

ov::AnyMap streams(int count) {
    // Two threads at least: with one alone, OpenVINO loses exceptions.
    return {ov::hint::inference_precision(ov::element::f32), ov::num_streams(count),
            ov::inference_num_threads(std::max(2, count)), ov::hint::enable_cpu_pinning(false)};
}

ov::Core core_with(const Files& files) {
    ov::Core core;
    core.add_extension(files.library);
    return core;
}

void fill(ov::InferRequest& request, size_t inputs, int variant) {
    for (size_t k = 0; k < inputs; ++k) {
        auto tensor = request.get_input_tensor(k);
        for (size_t i = 0; i < tensor.get_size(); ++i) {
            tensor.data<float>()[i] =
                0.1F * static_cast<float>((7 * i + 3 * k) % 11) * static_cast<float>(variant);
        }
    }
}

Values outputs_of(ov::InferRequest& request, size_t outputs) {
    Values values;
    for (size_t k = 0; k < outputs; ++k) {
        const auto tensor = request.get_output_tensor(k);
        values.emplace_back(tensor.data<const float>(), tensor.data<const float>() + tensor.get_size());
    }
    return values;
}

void expect_equal(const Values& values, const Values& expected) {
    for (size_t k = 0; k < expected.size(); ++k) {
        bool equal = values[k].size() == expected[k].size();
        for (size_t i = 0; equal && i < values[k].size(); ++i) {
            equal = std::abs(values[k][i] - expected[k][i]) <= 1e-4F * (1 + std::abs(expected[k][i]));
        }
        if (!equal) throw std::runtime_error("output " + std::to_string(k) + " is wrong");
    }
}

constexpr int variants = 4;

// What the model without the op answers to each variant of the inputs.
std::vector<Values> expected_of(const Files& files) {
    auto compiled = ov::Core().compile_model(files.whole, "CPU", in_f32);
    auto request = compiled.create_infer_request();
    std::vector<Values> expected;
    for (int variant = 0; variant < variants; ++variant) {
        fill(request, compiled.inputs().size(), variant - 1);
        request.infer();
        expected.push_back(outputs_of(request, compiled.outputs().size()));
    }
    return expected;
}

// One thread's requests; `between` is called after each of them.
void ask(
    ov::CompiledModel compiled, const std::vector<Values>& expected, int count,
    const std::function<void(int)>& between = [](int) {}) {
    auto request = compiled.create_infer_request();
    for (int i = 0; i < count; ++i) {
        fill(request, compiled.inputs().size(), i % variants - 1);
        request.infer();
        expect_equal(outputs_of(request, compiled.outputs().size()),
                     expected[static_cast<size_t>(i % variants)]);
        between(i);
    }
}

void at_once(size_t threads, const std::function<void()>& work) {
    std::exception_ptr failure;
    std::atomic<bool> failed{false};
    std::vector<std::thread> workers;
    for (size_t i = 0; i < threads; ++i) {
        workers.emplace_back([&] {
            try {
                work();
            } catch (...) {
                if (!failed.exchange(true)) failure = std::current_exception();
            }
        });
    }
    for (auto& worker : workers) worker.join();
    if (failure) std::rethrow_exception(failure);
}

// 10,000 requests from 8 threads, on one stream and on several.
void threads(const Files& files) {
    const auto expected = expected_of(files);
    for (const int count : {1, 3}) {
        const auto compiled = core_with(files).compile_model(files.scheduled, "CPU", streams(count));
        at_once(8, [&] { ask(compiled, expected, 625); });
    }
}

// Each thread reads and compiles models of its own, and two share one that is compiled at the same time.
void compiled(const Files& files) {
    const auto expected = expected_of(files);
    auto core = core_with(files);
    const auto model = core.read_model(files.scheduled);
    at_once(4, [&] {
        ask(core.compile_model(model, "CPU", streams(1)), expected, 20);
        ask(core_with(files).compile_model(files.scheduled, "CPU", streams(2)), expected, 20);
    });
}

// Pauses in which the workers park, and some in which they are about to.
void parked(const Files& files) {
    const auto compiled = core_with(files).compile_model(files.scheduled, "CPU", streams(1));
    ask(compiled, expected_of(files), 300,
        [](int i) { std::this_thread::sleep_for(std::chrono::microseconds(i % 3 == 0 ? 3000 : 150 + i)); });
}

bool fails(ov::InferRequest& request, int row, bool asynchronous) {
    request.get_input_tensor(1).data<int>()[0] = row;
    try {
        if (asynchronous) {
            request.start_async();
            request.wait();
        } else {
            request.infer();
        }
        return false;
    } catch (const ov::Exception& error) {
        if (std::string(error.what()).find("submodel 'failing' on CPU: ") == std::string::npos) throw;
        return true;
    }
}

void failing(const Files& files) {
    const auto compiled = core_with(files).compile_model(files.failing, "CPU", streams(2));
    at_once(4, [&] {
        auto request = ov::CompiledModel(compiled).create_infer_request();
        for (int i = 0; i < 200; ++i) {
            if (fails(request, i % 4, i % 3 == 0)) throw std::runtime_error("a good request fails");
            if (!fails(request, 9, i % 2 == 0)) throw std::runtime_error("a failure is lost");
        }
    });
}

// Everything that made a run is let go while it goes on.
void destroyed(const Files& files) {
    for (int i = 0; i < 12; ++i) {
        std::vector<ov::InferRequest> requests;
        {
            auto compiled = core_with(files).compile_model(files.scheduled, "CPU", streams(2));
            for (int k = 0; k < 4; ++k) {
                requests.push_back(compiled.create_infer_request());
                fill(requests.back(), compiled.inputs().size(), k);
            }
            for (auto& request : requests) request.start_async();
        }
        if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50 * i));
        requests.clear();
    }
}

// What runs and what ended is asked for all the time.
void profiled(const Files& files) {
    auto core = core_with(files);
    const auto model = core.read_model(files.scheduled);
    const auto compiled = core.compile_model(model, "CPU", streams(2));
    std::string name;
    for (const auto& op : model->get_ops()) {
        if (std::string(op->get_type_name()) == "Schedule") name = op->get_friendly_name();
    }
    auto* library = dlopen(files.library.c_str(), RTLD_NOW);
    using Profile = size_t (*)(const char*, char*, size_t);
    const auto profile = reinterpret_cast<Profile>(dlsym(library, "ov_autoplace_profile"));
    using Register = int (*)(const char*, const char*);
    const auto add = reinterpret_cast<Register>(dlsym(library, "ov_autoplace_register_plugin"));
    std::atomic<bool> done{false};
    std::thread asking([&] {
        std::vector<char> text(1 << 20);
        while (!done) {
            if (profile(name.c_str(), text.data(), text.size()) == 0) std::terminate();
            add("OTHER", "libopenvino_intel_cpu_plugin.so");
        }
    });
    const auto expected = expected_of(files);
    at_once(3, [&] { ask(compiled, expected, 300); });
    done = true;
    asking.join();
}

void forked(const Files& files) {
    const auto expected = expected_of(files);
    auto model = core_with(files).compile_model(
        files.scheduled, "CPU", {ov::hint::inference_precision(ov::element::f32), ov::num_streams(0)});
    ask(model, expected, 100);
    const auto child = fork();
    if (child == 0) {
        alarm(60);
        try {
            ask(model, expected, 100);
            model = {};
        } catch (...) {
            _exit(1);
        }
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ask(model, expected, 100);
    if (status != 0) throw std::runtime_error("the forked process failed");
}

// A compiled model that is alive when the process ends, with workers that look for work.
void at_exit(const Files& files) {
    static ov::CompiledModel last;
    last = core_with(files).compile_model(files.scheduled, "CPU", streams(1));
    ask(last, expected_of(files), 100);
}

int run(const std::vector<std::string>& arguments) {
    const std::map<std::string, std::function<void(const Files&)>> ways = {
        {"threads", threads},     {"compiled", compiled}, {"parked", parked}, {"failing", failing},
        {"destroyed", destroyed}, {"profiled", profiled}, {"forked", forked}, {"at_exit", at_exit},
    };
    if (arguments.size() != 5 || ways.count(arguments[0]) == 0) {
        std::cerr
            << "usage: schedules WAY libov_autoplace_extension.so scheduled.xml whole.xml failing.xml\n";
        return 2;
    }
    ways.at(arguments[0])({arguments[1], arguments[2], arguments[3], arguments[4]});
    return 0;
}

}  // namespace

int main(int argc, char* argv[]) {
    try {
        return run({argv + 1, argv + argc});
    } catch (const std::exception& error) {
        std::cerr << "schedules: " << error.what() << "\n";
        return 1;
    }
}
