// Runs an annotated model with OpenVINO and the ov-autoplace extension, and prints where it ran and a
// checksum of what it answered.
//
//     autoplace_example libov_autoplace_extension.so model.autoplace.xml [ALIAS=plugin_library ...]
//
// An alias makes a plugin available under a second name, which is how a machine with one device can try this.
#include <cstdint>
#include <exception>
#include <iostream>
#include <numeric>
#include <openvino/openvino.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// The devices of the annotation, most preferred first.
std::string annotated_devices(const ov::Model& model) {
    if (!model.has_rt_info("autoplace", "devices")) {
        throw std::runtime_error("model '" + model.get_friendly_name() +
                                 "' carries no annotation; make one with `ov-autoplace annotate`");
    }
    return model.get_rt_info<std::string>("autoplace", "devices");
}

// Lets f32 inputs take bytes, as pictures come: what converts them is added to the model here.
std::shared_ptr<ov::Model> with_byte_inputs(const std::shared_ptr<ov::Model>& model) {
    ov::preprocess::PrePostProcessor preparation(model);
    for (size_t i = 0; i < model->inputs().size(); ++i) {
        if (model->input(i).get_element_type() == ov::element::f32)
            preparation.input(i).tensor().set_element_type(ov::element::u8);
    }
    return preparation.build();
}

// Fills a tensor with i % 7 over its elements.
template <typename T>
void fill(ov::Tensor& tensor) {
    T* data = tensor.data<T>();
    for (size_t i = 0; i < tensor.get_size(); ++i) data[i] = static_cast<T>(i % 7);
}

void fill_input(ov::Tensor tensor) {
    const auto type = tensor.get_element_type();
    if (type == ov::element::u8) return fill<uint8_t>(tensor);
    if (type == ov::element::i64) return fill<int64_t>(tensor);
    if (type == ov::element::i32) return fill<int32_t>(tensor);
    throw std::runtime_error("this example fills f32, i64 and i32 inputs, not " + type.get_type_name());
}

double checksum(const ov::Tensor& tensor) {
    if (tensor.get_element_type() != ov::element::f32) {
        throw std::runtime_error("this example sums f32 outputs, not " +
                                 tensor.get_element_type().get_type_name());
    }
    const float* data = tensor.data<const float>();
    return std::accumulate(data, data + tensor.get_size(), 0.0);
}

void register_alias(ov::Core& core, const std::string& argument) {
    const auto equals = argument.find('=');
    if (equals == std::string::npos)
        throw std::runtime_error("'" + argument + "' is not ALIAS=plugin_library");
    core.register_plugin(argument.substr(equals + 1), argument.substr(0, equals));
}

int run(const std::vector<std::string>& arguments) {
    if (arguments.size() < 2) {
        std::cerr << "usage: autoplace_example libov_autoplace_extension.so model.autoplace.xml "
                     "[ALIAS=plugin_library ...]\n";
        return 2;
    }
    ov::Core core;
    for (size_t i = 2; i < arguments.size(); ++i) register_alias(core, arguments[i]);

    core.add_extension(arguments[0]);
    const auto model = core.read_model(arguments[1]);
    const auto devices = "HETERO:" + annotated_devices(*model);
    // In f32, so that the checksum can be compared between devices and machines.
    ov::CompiledModel compiled =
        core.compile_model(with_byte_inputs(model), devices, ov::hint::inference_precision(ov::element::f32));

    std::cout << "EXECUTION_DEVICES";
    for (const auto& device : compiled.get_property(ov::execution_devices)) std::cout << " " << device;
    const auto submodels = compiled.get_property("HETERO_NUMBER_OF_SUBMODELS").as<std::string>();
    std::cout << "\nHETERO_NUMBER_OF_SUBMODELS " << submodels << "\n";

    auto request = compiled.create_infer_request();
    for (const auto& input : compiled.inputs()) fill_input(request.get_tensor(input));
    request.infer();
    double sum = 0.0;
    for (const auto& output : compiled.outputs()) sum += checksum(request.get_tensor(output));
    std::cout.precision(9);
    std::cout << "CHECKSUM " << sum << "\n";
    return 0;
}

}  // namespace

int main(int argc, char* argv[]) {
    try {
        return run({argv + 1, argv + argc});
    } catch (const std::exception& error) {
        std::cerr << "autoplace_example: " << error.what() << "\n";
        return 1;
    }
}
