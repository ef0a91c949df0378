#include "paced_memory.hpp"

#include <cstring>
#include <vector>

#include "driver.hpp"

namespace virtual_gpu {
namespace {

void* zeroed(void* memory, std::size_t size) { return memory ? std::memset(memory, 0, size) : nullptr; }

using AllocateHost = void* (*)(cl_context, const cl_ulong*, std::size_t, cl_uint, cl_int*);
using AllocateDevice = void* (*)(cl_context, cl_device_id, const cl_ulong*, std::size_t, cl_uint, cl_int*);

AllocateHost real_host = nullptr;
AllocateDevice real_device = nullptr;
AllocateDevice real_shared = nullptr;

void* allocate_host(cl_context context, const cl_ulong* properties, std::size_t size, cl_uint alignment,
                    cl_int* error) {
    return zeroed(real_host(context, properties, size, alignment, error), size);
}

void* allocate_device(cl_context context, cl_device_id device, const cl_ulong* properties, std::size_t size,
                      cl_uint alignment, cl_int* error) {
    return zeroed(real_device(context, device, properties, size, alignment, error), size);
}

void* allocate_shared(cl_context context, cl_device_id device, const cl_ulong* properties, std::size_t size,
                      cl_uint alignment, cl_int* error) {
    return zeroed(real_shared(context, device, properties, size, alignment, error), size);
}

}  // namespace

cl_mem create_zeroed_buffer(cl_context context, cl_ulong flags, std::size_t size, void* host, cl_int* error) {
    static const auto call =
        reinterpret_cast<decltype(&create_zeroed_buffer)>(driver_entry("clCreateBuffer"));
    constexpr cl_ulong kUseHost = 1 << 3, kCopyHost = 1 << 5;
    if (host || (flags & (kUseHost | kCopyHost))) {
        return call(context, flags, size, host, error);
    }
    std::vector<unsigned char> zeros(size);
    return call(context, flags | kCopyHost, size, zeros.data(), error);
}

void* zeroing_allocation(const char* name, void* function) {
    if (std::strcmp(name, "clHostMemAllocINTEL") == 0) {
        real_host = reinterpret_cast<AllocateHost>(function);
        return reinterpret_cast<void*>(allocate_host);
    }
    if (std::strcmp(name, "clDeviceMemAllocINTEL") == 0) {
        real_device = reinterpret_cast<AllocateDevice>(function);
        return reinterpret_cast<void*>(allocate_device);
    }
    if (std::strcmp(name, "clSharedMemAllocINTEL") == 0) {
        real_shared = reinterpret_cast<AllocateDevice>(function);
        return reinterpret_cast<void*>(allocate_shared);
    }
    return nullptr;
}

}  // namespace virtual_gpu
