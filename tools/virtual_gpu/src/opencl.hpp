// The part of the OpenCL 3.0 interface that the shim answers itself or calls: types, numbers, signatures.
// Written down here so that building needs no OpenCL headers on the machine.
#pragma once

#include <cstddef>
#include <cstdint>

using cl_int = std::int32_t;
using cl_uint = std::uint32_t;
using cl_ulong = std::uint64_t;

using cl_platform_id = struct OpenclPlatform*;
using cl_device_id = struct OpenclDevice*;
using cl_context = struct OpenclContext*;
using cl_command_queue = struct OpenclQueue*;
using cl_program = struct OpenclProgram*;
using cl_kernel = struct OpenclKernel*;
using cl_event = struct OpenclEvent*;

constexpr cl_int CL_SUCCESS = 0;
constexpr cl_int CL_INVALID_VALUE = -30;
constexpr cl_int CL_INVALID_PLATFORM = -32;
constexpr cl_int CL_PLATFORM_NOT_FOUND_KHR = -1001;

constexpr cl_ulong CL_DEVICE_TYPE_DEFAULT = 1;
constexpr cl_ulong CL_DEVICE_TYPE_CPU = 2;
constexpr cl_ulong CL_DEVICE_TYPE_GPU = 4;
constexpr cl_ulong CL_DEVICE_TYPE_CUSTOM = 16;
constexpr cl_ulong CL_DEVICE_TYPE_ALL = 0xFFFFFFFF;

// clGetDeviceInfo
constexpr cl_uint CL_DEVICE_TYPE = 0x1000;
constexpr cl_uint CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002;
constexpr cl_uint CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004;
constexpr cl_uint CL_DEVICE_MAX_WORK_ITEM_SIZES = 0x1005;
constexpr cl_uint CL_DEVICE_MAX_CLOCK_FREQUENCY = 0x100C;
constexpr cl_uint CL_DEVICE_NAME = 0x102B;
constexpr cl_uint CL_DRIVER_VERSION = 0x102D;
constexpr cl_uint CL_DEVICE_EXTENSIONS = 0x1030;
constexpr cl_uint CL_DEVICE_PARTITION_MAX_SUB_DEVICES = 0x1043;
constexpr cl_uint CL_DEVICE_PARTITION_PROPERTIES = 0x1044;
constexpr cl_uint CL_DEVICE_SUB_GROUP_SIZES_INTEL = 0x4108;
// The same, cl_intel_device_attribute_query: what sort of Intel GPU it is.
constexpr cl_uint CL_DEVICE_IP_VERSION_INTEL = 0x4250;
constexpr cl_uint CL_DEVICE_ID_INTEL = 0x4251;
constexpr cl_uint CL_DEVICE_NUM_SLICES_INTEL = 0x4252;
constexpr cl_uint CL_DEVICE_NUM_SUB_SLICES_PER_SLICE_INTEL = 0x4253;
constexpr cl_uint CL_DEVICE_NUM_EUS_PER_SUB_SLICE_INTEL = 0x4254;
constexpr cl_uint CL_DEVICE_NUM_THREADS_PER_EU_INTEL = 0x4255;
constexpr cl_uint CL_DEVICE_FEATURE_CAPABILITIES_INTEL = 0x4256;

// clGetProgramInfo, clGetProgramBuildInfo
constexpr cl_uint CL_PROGRAM_REFERENCE_COUNT = 0x1160;
constexpr cl_uint CL_PROGRAM_CONTEXT = 0x1161;
constexpr cl_uint CL_PROGRAM_DEVICES = 0x1163;
constexpr cl_uint CL_PROGRAM_SOURCE = 0x1164;
constexpr cl_uint CL_PROGRAM_BINARY_SIZES = 0x1165;
constexpr cl_uint CL_PROGRAM_BINARIES = 0x1166;
constexpr cl_uint CL_PROGRAM_NUM_KERNELS = 0x1167;
constexpr cl_uint CL_PROGRAM_KERNEL_NAMES = 0x1168;
constexpr cl_uint CL_PROGRAM_BUILD_LOG = 0x1183;

// clGetKernelInfo, clGetKernelWorkGroupInfo, clGetKernelSubGroupInfo
constexpr cl_uint CL_KERNEL_FUNCTION_NAME = 0x1190;
constexpr cl_uint CL_KERNEL_NUM_ARGS = 0x1191;
constexpr cl_uint CL_KERNEL_REFERENCE_COUNT = 0x1192;
constexpr cl_uint CL_KERNEL_COMPILE_WORK_GROUP_SIZE = 0x11B1;
constexpr cl_uint CL_KERNEL_COMPILE_SUB_GROUP_SIZE_INTEL = 0x410A;

using BuildCallback = void (*)(cl_program, void*);
