"""Programs on paced queues of the virtual GPU, each for a process of its own; tests look at what they give.

The table gives ``count`` 2 ms and ``other`` 3 ms.
"""

from __future__ import annotations

import threading
import time
from ctypes import c_size_t, c_uint32, c_void_p, create_string_buffer, string_at
from typing import Any

from opencl import COMPLETE, OUT_OF_ORDER, Device, OpenclError, Queue

COUNT, OTHER = 2_000_000, 3_000_000
"""Nanoseconds of the kernels in the table."""


def kernels_and_processor() -> dict[str, Any]:
    """A hundred kernels, finished."""
    device = Device()
    queue = Queue(device)
    start, processor = time.monotonic_ns(), time.process_time_ns()
    events = [queue.launch("count" if i % 2 else "other") for i in range(100)]
    enqueued = time.monotonic_ns()
    status = device.status(events[-1])
    queue.finish()
    end = time.monotonic_ns()
    return {
        "enqueuing": enqueued - start,
        "wall": end - start,
        "processor": time.process_time_ns() - processor,
        "status before": status,
        "status after": device.status(events[-1]),
        "times": [device.times(event) for event in events],
        "start": start,
        "end": end,
    }


def blocking_calls() -> dict[str, Any]:
    """What waits: a blocking read, waiting for an event, finishing."""
    device = Device()
    queue = Queue(device)
    ends = {}
    data = create_string_buffer(16)
    for name in ("read", "wait", "finish"):
        event = queue.launch("other")
        {"read": lambda: queue.read(device.numbers, data), "wait": lambda e=event: device.wait(e)}.get(
            name, queue.finish
        )()
        ends[name] = time.monotonic_ns() - device.times(event)[1]
    return ends


def copies() -> dict[str, Any]:
    """Data through buffers and unified memory."""
    device = Device()
    queue = Queue(device)
    first, second = device.buffer(16), device.buffer(16)
    found = {}
    data = create_string_buffer(16)
    queue.read(first, data)
    found["new"] = data.raw.hex()
    queue.write(first, create_string_buffer(b"0123456789abcdef", 16), blocking=1)
    queue.launch()
    queue.copy(first, second, 16)
    queue.read(second, data)
    found["copied"] = data.raw.decode()
    queue.fill(second, create_string_buffer(b"wxyz", 4), 16)
    queue.read(second, data)
    found["filled"] = data.raw.decode()

    allocate = device.extension("clHostMemAllocINTEL", c_void_p, c_void_p, c_size_t, c_uint32, c_void_p)
    memory = allocate(device.context, None, 16, 0, None)
    found["new unified"] = string_at(memory, 16).hex()
    types = (c_void_p, c_uint32, c_void_p, c_void_p, c_size_t, c_uint32, c_void_p, c_void_p)
    source = create_string_buffer(b"unified memory!!", 16)
    copy = device.extension("clEnqueueMemcpyINTEL", *types)
    found["status"] = copy(queue.handle, 1, memory, source, 16, 0, None, None) or 0
    found["unified"] = string_at(memory, 16).decode()
    found["unknown"] = device.extension("clEnqueueMigrateMemINTEL", c_void_p) is None
    return found


def user_events() -> dict[str, Any]:
    """A write that waits for the host, and what stands behind it in the queue."""
    device = Device()
    queue, other = Queue(device), Queue(device)
    buffer, data = device.buffer(4), create_string_buffer(4)
    gate = device.user_event()
    source = create_string_buffer(b"late", 4)
    write = queue.write(buffer, source, after=[gate])
    kernel = queue.launch("count")
    elsewhere = other.launch("other", after=[kernel])
    heard: list[int] = []
    device.on_complete(elsewhere, heard.append)
    time.sleep(0.02)
    waiting = [device.status(event) for event in (gate, write, kernel, elsewhere)]
    threading.Timer(0.05, device.set, (gate,)).start()
    set_before = time.monotonic_ns()
    queue.read(buffer, data)
    other.finish()
    limit = time.monotonic() + 10
    while not heard and time.monotonic() < limit:
        time.sleep(0.001)
    return {
        "waiting": waiting,
        "data": data.raw.decode(),
        "before": set_before,
        "times": [device.times(event) for event in (write, kernel, elsewhere)],
        "heard": heard,
    }


def failing_events() -> dict[str, Any]:
    """A user event that fails takes with it what names it, not what only comes after it in the queue."""
    device = Device()
    queue = Queue(device)
    gate = device.user_event()
    dependent = queue.launch("count", after=[gate])
    further = queue.launch("count", after=[dependent])
    behind = queue.launch("count")
    device.set(gate, -5)
    try:
        device.wait(dependent)
        raised = ""
    except OpenclError as error:
        raised = str(error)
    queue.finish()
    return {
        "raised": raised,
        "statuses": [device.status(event) for event in (gate, dependent, further, behind)],
        "end": device.times(behind),
    }


def wrong_handles() -> list[str]:
    """What a call gives for what is no event, or is one no more."""
    device = Device()
    queue = Queue(device)
    gone = queue.launch()
    queue.finish()
    device.call("clReleaseEvent", gone)
    found = []
    for call in (
        lambda: device.wait(gone),
        lambda: device.status(gone),
        lambda: queue.launch(after=[c_void_p(12345)]),
        lambda: device.set(queue.launch()),
        lambda: device.call("clFinish", None),
    ):
        try:
            call()
            found.append("")
        except OpenclError as error:
            found.append(str(error))
    return found


def out_of_order() -> dict[str, Any]:
    """Commands without dependencies, then a barrier, then more."""
    device = Device()
    queue = Queue(device, OUT_OF_ORDER)
    gate = device.user_event()
    held = queue.launch("count", after=[gate])
    free = queue.launch("count")
    device.wait(free)
    before = device.status(held)
    barrier = queue.barrier()
    after = queue.launch("other")
    held_back = device.status(after)
    device.set(gate)
    queue.finish()
    return {
        "before": before,
        "held back": held_back,
        "times": [device.times(event) for event in (held, barrier, after)],
    }


def many_threads() -> dict[str, Any]:
    """Threads with queues of their own and one that all share; every event is kept."""
    device = Device()
    shared = Queue(device)
    events: list[list[Any]] = [[] for _ in range(4)]
    faults: list[str] = []

    def work(own: list[Any]) -> None:
        try:
            queue = Queue(device)
            buffer, data = device.buffer(4), create_string_buffer(4)
            for i in range(100):
                after = [shared.launch("other")]
                text = f"{i:04d}".encode()
                queue.write(buffer, create_string_buffer(text, 4), blocking=1)
                own.append(queue.launch("count", after=after))
                if i % 10 == 0:
                    queue.read(buffer, data)
                    if data.raw != text:
                        faults.append(f"{data.raw!r} is not {text!r}")
            queue.finish()
            queue.release()
        except Exception as cause:
            faults.append(repr(cause))

    threads = [threading.Thread(target=work, args=(own,)) for own in events]
    start = time.monotonic_ns()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shared.finish()
    wall = time.monotonic_ns() - start
    kernels = sorted(device.times(event) for own in events for event in own)
    complete = all(device.status(event) == COMPLETE for own in events for event in own)
    return {"faults": faults, "kernels": kernels, "complete": complete, "wall": wall}


def first_runs() -> list[tuple[int, int]]:
    """Times of one kernel's launches, one after the other."""
    device = Device()
    queue = Queue(device)
    found = []
    for _ in range(6):
        event = queue.launch("count", size=1024)
        device.wait(event)
        found.append(device.times(event))
    return found
