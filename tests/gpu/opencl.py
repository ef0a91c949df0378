"""OpenCL through ctypes, as far as tests of the virtual GPU's queues need it: a context, kernels, events."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import byref, c_char_p, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

__all__ = ["COMPLETE", "OUT_OF_ORDER", "SUBMITTED", "Device", "OpenclError", "Queue"]

COMPLETE, SUBMITTED = 0, 2
OUT_OF_ORDER, _PROFILING = 1, 2
_GPU, _BLOCKING, _READ_AND_WRITE = 4, 1, 1
_STATUS, _QUEUE_PROPERTIES = 0x11D3, 0x1093
_START, _END = 0x1282, 0x1283
_CALLBACK = ctypes.CFUNCTYPE(None, c_void_p, c_int32, c_void_p)

# Work of some microseconds to milliseconds by its size; what it computes does not matter.
_SOURCE = """
__kernel void count(__global uint* numbers) {
    uint sum = get_global_id(0);
    for (uint i = 0; i < 20000; ++i) sum = sum * 1664525u + 1013904223u;
    numbers[get_global_id(0)] = sum;
}
__kernel void other(__global uint* numbers) { numbers[get_global_id(0)] = 7; }
"""


class OpenclError(Exception):
    """A call failed; the number is OpenCL's."""


class Device:
    """The GPU that the library of the OpenCL loader's name shows, with a context and two kernels."""

    def __init__(self) -> None:
        self.calls = ctypes.CDLL("libOpenCL.so.1")
        for name in ("clCreateContext", "clCreateCommandQueueWithProperties", "clCreateBuffer"):
            getattr(self.calls, name).restype = c_void_p
        for name in ("clCreateProgramWithSource", "clCreateKernel", "clCreateUserEvent"):
            getattr(self.calls, name).restype = c_void_p
        self.calls.clEnqueueMapBuffer.restype = c_void_p
        self.calls.clGetExtensionFunctionAddressForPlatform.restype = c_void_p
        platform, self.handle, error = c_void_p(), c_void_p(), c_int32()
        self.call("clGetPlatformIDs", c_uint32(1), byref(platform), None)
        self.call("clGetDeviceIDs", platform, c_uint64(_GPU), c_uint32(1), byref(self.handle), None)
        self.platform = platform
        self.context = c_void_p(
            self.calls.clCreateContext(None, c_uint32(1), byref(self.handle), None, None, byref(error))
        )
        source = c_char_p(_SOURCE.encode())
        program = c_void_p(
            self.calls.clCreateProgramWithSource(self.context, c_uint32(1), byref(source), None, byref(error))
        )
        self.call("clBuildProgram", program, c_uint32(1), byref(self.handle), c_char_p(b""), None, None)
        self.kernels = {
            name: c_void_p(self.calls.clCreateKernel(program, c_char_p(name.encode()), byref(error)))
            for name in ("count", "other")
        }
        self.numbers = self.buffer(4096)
        for kernel in self.kernels.values():
            self.call("clSetKernelArg", kernel, c_uint32(0), c_size_t(8), byref(self.numbers))
        self._callbacks: list[Any] = []  # alive as long as they may be called

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function that gives a status.

        Raises:
            OpenclError: The status is no success.
        """
        status = getattr(self.calls, name)(*arguments)
        if status:
            raise OpenclError(f"{name} -> {status}")

    def buffer(self, size: int) -> c_void_p:
        """Memory of the device."""
        flags = c_uint64(_READ_AND_WRITE)
        return c_void_p(self.calls.clCreateBuffer(self.context, flags, c_size_t(size), None, None))

    def user_event(self) -> c_void_p:
        """An event that :meth:`set` completes."""
        return c_void_p(self.calls.clCreateUserEvent(self.context, None))

    def set(self, event: c_void_p, status: int = COMPLETE) -> None:
        """Complete a user event, or let it fail."""
        self.call("clSetUserEventStatus", event, c_int32(status))

    def status(self, event: c_void_p) -> int:
        """Execution status."""
        status = c_int32()
        self.call("clGetEventInfo", event, c_uint32(_STATUS), c_size_t(4), byref(status), None)
        return status.value

    def times(self, event: c_void_p) -> tuple[int, int]:
        """Start and end in nanoseconds."""
        found = []
        for query in (_START, _END):
            time = c_uint64()
            self.call("clGetEventProfilingInfo", event, c_uint32(query), c_size_t(8), byref(time), None)
            found.append(time.value)
        return found[0], found[1]

    def wait(self, *events: c_void_p) -> None:
        """Wait for events."""
        self.call("clWaitForEvents", c_uint32(len(events)), _array(events))

    def on_complete(self, event: c_void_p, call: Callable[[int], None]) -> None:
        """Call something with the status when an event has ended."""
        wrapped = _CALLBACK(lambda _event, status, _user: call(status))
        self._callbacks.append(wrapped)
        self.call("clSetEventCallback", event, c_int32(COMPLETE), wrapped, None)

    def extension(self, name: str, *types: Any) -> Any:
        """A function of an extension, whose arguments have these types."""
        address = self.calls.clGetExtensionFunctionAddressForPlatform(self.platform, c_char_p(name.encode()))
        return ctypes.CFUNCTYPE(c_void_p, *types)(address) if address else None


class Queue:
    """A command queue with profiling; commands give their events.

    Args:
        device: Its device.
        properties: Besides profiling.
    """

    def __init__(self, device: Device, properties: int = 0) -> None:
        self.device = device
        listed = (c_uint64 * 3)(_QUEUE_PROPERTIES, _PROFILING | properties, 0)
        self.handle = c_void_p(
            device.calls.clCreateCommandQueueWithProperties(device.context, device.handle, listed, None)
        )

    def _enqueue(self, name: str, after: Sequence[c_void_p], *arguments: Any) -> c_void_p:
        event = c_void_p()
        waits = (c_uint32(len(after)), _array(after), byref(event))
        self.device.call(name, self.handle, *arguments, *waits)
        return event

    def launch(self, kernel: str = "count", size: int = 64, after: Sequence[c_void_p] = ()) -> c_void_p:
        """Enqueue a kernel."""
        handle, one = self.device.kernels[kernel], c_uint32(1)
        return self._enqueue("clEnqueueNDRangeKernel", after, handle, one, None, byref(c_size_t(size)), None)

    def write(
        self, buffer: c_void_p, data: Any, after: Sequence[c_void_p] = (), blocking: int = 0
    ) -> c_void_p:
        """Enqueue writing ``data``, an object of ctypes."""
        size = c_size_t(ctypes.sizeof(data))
        arguments = (buffer, c_uint32(blocking), c_size_t(0), size, byref(data))
        return self._enqueue("clEnqueueWriteBuffer", after, *arguments)

    def read(self, buffer: c_void_p, data: Any, after: Sequence[c_void_p] = ()) -> None:
        """Read into ``data``, an object of ctypes, and wait for it."""
        size = c_size_t(ctypes.sizeof(data))
        arguments = (buffer, c_uint32(_BLOCKING), c_size_t(0), size, byref(data))
        self._enqueue("clEnqueueReadBuffer", after, *arguments)

    def copy(self, source: c_void_p, target: c_void_p, size: int) -> c_void_p:
        """Enqueue copying between buffers."""
        arguments = (source, target, c_size_t(0), c_size_t(0), c_size_t(size))
        return self._enqueue("clEnqueueCopyBuffer", (), *arguments)

    def fill(self, buffer: c_void_p, pattern: Any, size: int) -> c_void_p:
        """Enqueue filling with an object of ctypes."""
        arguments = (buffer, byref(pattern), c_size_t(ctypes.sizeof(pattern)), c_size_t(0), c_size_t(size))
        return self._enqueue("clEnqueueFillBuffer", (), *arguments)

    def marker(self) -> c_void_p:
        """Enqueue a marker behind everything."""
        return self._enqueue("clEnqueueMarkerWithWaitList", ())

    def barrier(self) -> c_void_p:
        """Enqueue a barrier behind everything."""
        return self._enqueue("clEnqueueBarrierWithWaitList", ())

    def finish(self) -> None:
        """Wait for everything."""
        self.device.call("clFinish", self.handle)

    def release(self) -> None:
        """Give the queue up."""
        self.device.call("clReleaseCommandQueue", self.handle)


def _array(events: Sequence[c_void_p]) -> Any:
    return (c_void_p * len(events))(*(event.value for event in events)) if events else None
