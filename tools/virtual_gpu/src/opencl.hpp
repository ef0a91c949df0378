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
using cl_mem = struct OpenclMemory*;

constexpr cl_uint CL_TRUE = 1;

constexpr cl_int CL_SUCCESS = 0;
constexpr cl_int CL_PROFILING_INFO_NOT_AVAILABLE = -7;
constexpr cl_int CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST = -14;
constexpr cl_int CL_INVALID_VALUE = -30;
constexpr cl_int CL_INVALID_PLATFORM = -32;
constexpr cl_int CL_INVALID_COMMAND_QUEUE = -36;
constexpr cl_int CL_INVALID_KERNEL = -48;
constexpr cl_int CL_INVALID_EVENT_WAIT_LIST = -57;
constexpr cl_int CL_INVALID_EVENT = -58;
constexpr cl_int CL_INVALID_OPERATION = -59;
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

// clGetCommandQueueInfo
constexpr cl_uint CL_QUEUE_CONTEXT = 0x1090;
constexpr cl_uint CL_QUEUE_REFERENCE_COUNT = 0x1092;
constexpr cl_uint CL_QUEUE_PROPERTIES = 0x1093;
constexpr cl_ulong CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE = 1;
constexpr cl_ulong CL_QUEUE_PROFILING_ENABLE = 2;

// clGetEventInfo, its statuses and types of commands, clGetEventProfilingInfo
constexpr cl_uint CL_EVENT_COMMAND_QUEUE = 0x11D0;
constexpr cl_uint CL_EVENT_COMMAND_TYPE = 0x11D1;
constexpr cl_uint CL_EVENT_REFERENCE_COUNT = 0x11D2;
constexpr cl_uint CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3;
constexpr cl_uint CL_EVENT_CONTEXT = 0x11D4;
constexpr cl_int CL_COMPLETE = 0;
constexpr cl_int CL_RUNNING = 1;
constexpr cl_int CL_SUBMITTED = 2;
constexpr cl_uint CL_COMMAND_NDRANGE_KERNEL = 0x11F0;
constexpr cl_uint CL_COMMAND_READ_BUFFER = 0x11F3;
constexpr cl_uint CL_COMMAND_WRITE_BUFFER = 0x11F4;
constexpr cl_uint CL_COMMAND_COPY_BUFFER = 0x11F5;
constexpr cl_uint CL_COMMAND_READ_IMAGE = 0x11F6;
constexpr cl_uint CL_COMMAND_WRITE_IMAGE = 0x11F7;
constexpr cl_uint CL_COMMAND_COPY_IMAGE = 0x11F8;
constexpr cl_uint CL_COMMAND_MAP_BUFFER = 0x11FB;
constexpr cl_uint CL_COMMAND_MAP_IMAGE = 0x11FC;
constexpr cl_uint CL_COMMAND_UNMAP_MEM_OBJECT = 0x11FD;
constexpr cl_uint CL_COMMAND_MARKER = 0x11FE;
constexpr cl_uint CL_COMMAND_USER = 0x1204;
constexpr cl_uint CL_COMMAND_BARRIER = 0x1205;
constexpr cl_uint CL_COMMAND_FILL_BUFFER = 0x1207;
constexpr cl_uint CL_COMMAND_FILL_IMAGE = 0x1208;
constexpr cl_uint CL_COMMAND_MEMFILL_INTEL = 0x4204;
constexpr cl_uint CL_COMMAND_MEMCPY_INTEL = 0x4205;
constexpr cl_uint CL_PROFILING_COMMAND_QUEUED = 0x1280;
constexpr cl_uint CL_PROFILING_COMMAND_SUBMIT = 0x1281;
constexpr cl_uint CL_PROFILING_COMMAND_START = 0x1282;
constexpr cl_uint CL_PROFILING_COMMAND_END = 0x1283;
constexpr cl_uint CL_PROFILING_COMMAND_COMPLETE = 0x1284;

using EventCallback = void (*)(cl_event, cl_int, void*);
using BuildCallback = void (*)(cl_program, void*);
