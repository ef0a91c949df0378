// What the device says of itself: a small integrated GPU of the ninth generation, which has neither DP4A
// nor DPAS instructions, so that the plugin chooses plain OpenCL kernels.
#include <cstdio>
#include <map>
#include <string>

#include "answer.hpp"
#include "driver.hpp"
#include "options.hpp"
#include "pace.hpp"

namespace virtual_gpu {
namespace {

struct Number {
    std::size_t bytes;
    cl_ulong value;  // little-endian, as every x86 is
};

std::map<cl_uint, Number> described_device() {
    std::map<cl_uint, Number> numbers = {
        {CL_DEVICE_TYPE, {8, CL_DEVICE_TYPE_GPU}},
        {CL_DEVICE_MAX_COMPUTE_UNITS, {4, 24}},
        {CL_DEVICE_MAX_CLOCK_FREQUENCY, {4, 1150}},
        {CL_DEVICE_MAX_WORK_GROUP_SIZE, {8, 256}},
        {CL_DEVICE_PARTITION_MAX_SUB_DEVICES, {4, 0}},
        {CL_DEVICE_PARTITION_PROPERTIES, {8, 0}},
        {CL_DEVICE_IP_VERSION_INTEL, {4, 0x02404009}},  // 9.1.9
        {CL_DEVICE_ID_INTEL, {4, 0x3e92}},
        {CL_DEVICE_NUM_SLICES_INTEL, {4, 1}},
        {CL_DEVICE_NUM_SUB_SLICES_PER_SLICE_INTEL, {4, 3}},
        {CL_DEVICE_NUM_EUS_PER_SUB_SLICE_INTEL, {4, 8}},
        {CL_DEVICE_NUM_THREADS_PER_EU_INTEL, {4, 7}},
        {CL_DEVICE_FEATURE_CAPABILITIES_INTEL, {8, 0}},
    };
    for (const auto& [query, value] : options().answers) {
        const auto known = numbers.find(query);
        numbers[query] = {known == numbers.end() ? 4 : known->second.bytes, value};
    }
    return numbers;
}

// The runtime's extensions without 16-bit floats.
std::string extensions_without_half(cl_device_id device) {
    std::size_t size = 0;
    driver().get_device_info(device, CL_DEVICE_EXTENSIONS, 0, nullptr, &size);
    std::string text(size, '\0');
    driver().get_device_info(device, CL_DEVICE_EXTENSIONS, size, text.data(), nullptr);
    text = text.c_str();  // without the closing zero
    const std::string half = "cl_khr_fp16 ";
    const std::size_t at = text.find(half);
    return at == std::string::npos ? text : text.erase(at, half.size());
}

// The type to ask the runtime for: its CPU is our GPU.
cl_ulong real_type(cl_ulong type) {
    if (type == CL_DEVICE_TYPE_ALL) {
        return type;
    }
    if (type & (CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_DEFAULT)) {
        return CL_DEVICE_TYPE_CPU;
    }
    return type == CL_DEVICE_TYPE_CPU ? CL_DEVICE_TYPE_CUSTOM : type;
}

}  // namespace
}  // namespace virtual_gpu

using namespace virtual_gpu;

VIRTUAL_GPU_EXPORT cl_int clGetPlatformIDs(cl_uint room, cl_platform_id* platforms, cl_uint* count) {
    return load_driver() ? driver().get_platform_ids(room, platforms, count) : CL_PLATFORM_NOT_FOUND_KHR;
}

VIRTUAL_GPU_EXPORT cl_int clGetDeviceIDs(cl_platform_id platform, cl_ulong type, cl_uint room,
                                         cl_device_id* devices, cl_uint* count) {
    return load_driver() ? driver().get_device_ids(platform, real_type(type), room, devices, count)
                         : CL_INVALID_PLATFORM;
}

VIRTUAL_GPU_EXPORT cl_int clGetDeviceInfo(cl_device_id device, cl_uint query, std::size_t room, void* out,
                                          std::size_t* needed) {
    static const std::map<cl_uint, Number> numbers = described_device();
    const auto number = numbers.find(query);
    if (number != numbers.end()) {
        return answer(&number->second.value, number->second.bytes, room, out, needed);
    }
    if (query == CL_DEVICE_NAME) {
        const std::string name = options().name + pacing_mark();
        return answer(name.c_str(), name.size() + 1, room, out, needed);
    }
    if (query == CL_DEVICE_MAX_WORK_ITEM_SIZES) {
        const std::size_t sizes[] = {256, 256, 256};
        return answer(sizes, sizeof sizes, room, out, needed);
    }
    if (query == CL_DEVICE_SUB_GROUP_SIZES_INTEL) {
        const std::size_t sizes[] = {8, 16, 32};
        return answer(sizes, sizeof sizes, room, out, needed);
    }
    if (query == CL_DEVICE_EXTENSIONS && !options().half) {
        const std::string text = extensions_without_half(device);
        return answer(text.c_str(), text.size() + 1, room, out, needed);
    }
    const cl_int error = driver().get_device_info(device, query, room, out, needed);
    if (error && options().debug) {
        std::fprintf(stderr, "virtual GPU: clGetDeviceInfo 0x%x -> %d\n", query, error);
    }
    return error;
}
