#include "forward.hpp"

#include <cstddef>
#include <cstdio>
#include <iterator>

#include "driver.hpp"
#include "pace.hpp"
#include "paced_calls.hpp"

// Every call that OpenVINO's GPU plugin is linked to and that the shim does not answer itself, unless kernels
// are paced, with its place in the table. No signature is needed: a jump leaves the arguments where they are.
#define FORWARDED_CALLS(X)                   \
    X(0, clCreateBuffer)                     \
    X(1, clCreateCommandQueueWithProperties) \
    X(2, clCreateContext)                    \
    X(3, clCreateImage)                      \
    X(4, clCreateImage2D)                    \
    X(5, clCreateSubBuffer)                  \
    X(6, clCreateSubDevices)                 \
    X(7, clCreateUserEvent)                  \
    X(8, clEnqueueBarrierWithWaitList)       \
    X(9, clEnqueueCopyBuffer)                \
    X(10, clEnqueueCopyImage)                \
    X(11, clEnqueueFillBuffer)               \
    X(12, clEnqueueFillImage)                \
    X(13, clEnqueueMapBuffer)                \
    X(14, clEnqueueMapImage)                 \
    X(15, clEnqueueMarkerWithWaitList)       \
    X(16, clEnqueueReadBuffer)               \
    X(17, clEnqueueReadImage)                \
    X(18, clEnqueueUnmapMemObject)           \
    X(19, clEnqueueWriteBuffer)              \
    X(20, clEnqueueWriteImage)               \
    X(21, clFinish)                          \
    X(22, clFlush)                           \
    X(23, clGetCommandQueueInfo)             \
    X(24, clGetContextInfo)                  \
    X(25, clGetDeviceAndHostTimer)           \
    X(26, clGetEventInfo)                    \
    X(27, clGetEventProfilingInfo)           \
    X(28, clGetImageInfo)                    \
    X(29, clGetKernelInfo)                   \
    X(30, clGetMemObjectInfo)                \
    X(31, clGetPlatformInfo)                 \
    X(32, clReleaseCommandQueue)             \
    X(33, clReleaseContext)                  \
    X(34, clReleaseDevice)                   \
    X(35, clReleaseEvent)                    \
    X(36, clReleaseMemObject)                \
    X(37, clRetainCommandQueue)              \
    X(38, clRetainContext)                   \
    X(39, clRetainDevice)                    \
    X(40, clRetainEvent)                     \
    X(41, clRetainKernel)                    \
    X(42, clRetainMemObject)                 \
    X(43, clRetainProgram)                   \
    X(44, clSetEventCallback)                \
    X(45, clSetUserEventStatus)              \
    X(46, clWaitForEvents)

namespace {

#define NAME(place, name) #name,
constexpr const char* kNames[] = {FORWARDED_CALLS(NAME)};
#undef NAME

// What a caller meets who has not asked for a platform, and so cannot hold a valid handle.
int before_any_platform() { return CL_INVALID_PLATFORM; }

}  // namespace

extern "C" {
#define EMPTY(place, name) reinterpret_cast<void*>(before_any_platform),
__attribute__((visibility("hidden"), used)) void* virtual_gpu_forward_table[] = {FORWARDED_CALLS(EMPTY)};
#undef EMPTY
}

#define JUMP(place, name)                          \
    asm(".pushsection .text\n"                     \
        ".globl " #name                            \
        "\n"                                       \
        ".type " #name ", @function\n" #name       \
        ":\n"                                      \
        "jmp *virtual_gpu_forward_table+8*" #place \
        "(%rip)\n"                                 \
        ".size " #name ", .-" #name                \
        "\n"                                       \
        ".popsection\n");
FORWARDED_CALLS(JUMP)

namespace virtual_gpu {

bool fill_forward_table() {
    for (std::size_t i = 0; i < std::size(kNames); ++i) {
        void* entry = is_paced() ? paced_entry(kNames[i]) : nullptr;
        if (!entry) {
            entry = driver_entry(kNames[i]);
        }
        if (!entry) {
            std::fprintf(stderr, "virtual GPU: the OpenCL runtime has no %s\n", kNames[i]);
            return false;
        }
        virtual_gpu_forward_table[i] = entry;
    }
    return true;
}

}  // namespace virtual_gpu
