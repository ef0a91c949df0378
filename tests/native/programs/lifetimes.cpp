// Uses an annotated model of one f32 input and one f32 output in one of the ways that applications do:
//
//     lifetimes WAY libov_autoplace_extension.so model.autoplace.xml
//
// Prints a line `SUBMODELS sum` for each model that was compiled; `sum` adds up the outputs for an input of i
// % 7.
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <openvino/op/negative.hpp>
#include <openvino/openvino.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

const char* const devices = "HETERO:CPU,XCPU";
const ov::AnyMap in_f32 = {ov::hint::inference_precision(ov::element::f32)};

using Model = std::shared_ptr<ov::Model>;

std::string use(ov::CompiledModel compiled) {
    auto request = compiled.create_infer_request();
    auto input = request.get_input_tensor();
    for (size_t i = 0; i < input.get_size(); ++i) input.data<float>()[i] = static_cast<float>(i % 7);
    request.infer();
    const auto output = request.get_output_tensor();
    const auto* data = output.data<const float>();
    std::ostringstream line;
    line << compiled.get_property("HETERO_NUMBER_OF_SUBMODELS").as<std::string>() << " "
         << std::accumulate(data, data + output.get_size(), 0.0) << "\n";
    return line.str();
}

struct Files {
    std::string library, model;
};

ov::Core core_with(const Files& files) {
    ov::Core core;
    core.add_extension(files.library);
    return core;
}

std::string path(const Files& files) {
    return use(core_with(files).compile_model(files.model, devices, in_f32));
}

// The first dimension of the input becomes three times as long.
std::string reshape(const Files& files) {
    auto core = core_with(files);
    const auto model = core.read_model(files.model);
    auto shape = model->input().get_shape();
    shape[0] *= 3;
    model->reshape(shape);
    return use(core.compile_model(model, devices, in_f32));
}

std::string clone(const Files& files) {
    auto core = core_with(files);
    const auto copy = core.read_model(files.model)->clone();
    const auto copy_of_copy = copy->clone();
    return use(core.compile_model(copy, devices, in_f32)) +
           use(core.compile_model(copy_of_copy, devices, in_f32));
}

// The Core that loaded the library is gone before the model is cloned, reshaped and compiled by another one.
std::string unload(const Files& files) {
    Model model;
    ov::CompiledModel compiled;
    {
        auto core = core_with(files);
        model = core.read_model(files.model);
        compiled = core.compile_model(model, devices, in_f32);
    }
    const auto first = use(compiled);
    const auto copy = model->clone();
    copy->reshape(model->input().get_partial_shape());
    model.reset();
    return first + use(ov::Core().compile_model(copy, devices, in_f32));
}

std::string twice(const Files& files) {
    auto core = core_with(files);
    core.add_extension(files.library);
    auto other = core_with(files);
    return use(core.compile_model(core.read_model(files.model), devices, in_f32)) +
           use(other.compile_model(other.read_model(files.model), devices, in_f32));
}

std::string at_once(size_t threads, const std::function<std::string()>& work) {
    std::vector<std::string> lines(threads);
    std::vector<std::thread> workers;
    for (auto& line : lines) {
        workers.emplace_back([&line, &work] {
            try {
                for (int i = 0; i < 5; ++i) line += work();
            } catch (const std::exception& error) {
                line = std::string("failed: ") + error.what();
            }
        });
    }
    for (auto& worker : workers) worker.join();
    return std::accumulate(lines.begin(), lines.end(), std::string());
}

// Two threads read and compile with one Core.
std::string one_core(const Files& files) {
    auto core = core_with(files);
    return at_once(2, [&] { return use(core.compile_model(core.read_model(files.model), devices, in_f32)); });
}

// Two threads load the library, read and compile, each with Cores of its own.
std::string own_cores(const Files& files) {
    return at_once(2, [&] { return path(files); });
}

// Two threads compile one model, to which an op was added that nobody gave a device.
std::string one_model(const Files& files) {
    auto core = core_with(files);
    const auto model = core.read_model(files.model);
    const auto result = model->get_results().at(0);
    const auto added = std::make_shared<ov::op::v0::Negative>(result->input_value(0));
    result->input(0).replace_source_output(added);
    return at_once(2, [&] { return use(core.compile_model(model, devices, in_f32)); });
}

int run(const std::vector<std::string>& arguments) {
    const std::map<std::string, std::function<std::string(const Files&)>> ways = {
        {"path", path},   {"reshape", reshape},   {"clone", clone},         {"unload", unload},
        {"twice", twice}, {"one_core", one_core}, {"own_cores", own_cores}, {"one_model", one_model},
    };
    if (arguments.size() != 3 || ways.count(arguments[0]) == 0) {
        std::cerr << "usage: lifetimes WAY libov_autoplace_extension.so model.autoplace.xml\n";
        return 2;
    }
    std::cout << ways.at(arguments[0])({arguments[1], arguments[2]});
    return 0;
}

}  // namespace

int main(int argc, char* argv[]) {
    try {
        return run({argv + 1, argv + argc});
    } catch (const std::exception& error) {
        std::cerr << "lifetimes: " << error.what() << "\n";
        return 1;
    }
}
