#include "timeline.hpp"

#include <algorithm>
#include <utility>

#include "alarm.hpp"
#include "commands.hpp"
#include "driver.hpp"

namespace virtual_gpu {
namespace {

// Null when there is no such queue. Its properties are asked for once.
Queue* queue_of(cl_command_queue handle) {
    const auto found = state().queues.find(handle);
    if (found != state().queues.end()) {
        return &found->second;
    }
    Queue queue;
    const auto& ask = driver().get_queue_info;
    if (ask(handle, CL_QUEUE_CONTEXT, sizeof queue.context, &queue.context, nullptr) ||
        ask(handle, CL_QUEUE_PROPERTIES, sizeof queue.properties, &queue.properties, nullptr)) {
        return nullptr;
    }
    return &(state().queues[handle] = queue);
}

// The caller's last reference to a queue is gone, and nothing moves data with it any more.
void drop(cl_command_queue handle) {
    static const auto release =
        reinterpret_cast<cl_int (*)(cl_command_queue)>(driver_entry("clReleaseCommandQueue"));
    state().queues.erase(handle);
    release(handle);
}

// False when one of them is no event.
bool commands_of(WaitList waits, std::vector<CommandRef>& commands) {
    for (cl_uint i = 0; i < waits.count; ++i) {
        commands.push_back(command_of(waits.events[i]));
        if (!commands.back()) {
            return false;
        }
    }
    return true;
}

void depend(const CommandRef& command, const CommandRef& on, bool inherits) {
    if (on->is_timed) {
        command->ready = std::max(command->ready, on->end);
        if (inherits && on->error) {
            command->error = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
        }
    } else {
        on->dependents.push_back({command, inherits});
        ++command->missing;
    }
}

cl_int wait(Lock& lock, const std::vector<CommandRef>& commands) {
    Nanoseconds end = 0;
    bool failed = false;
    for (const CommandRef& command : commands) {
        state().timed.wait(lock, [&] { return command->is_timed; });
        end = std::max(end, command->end);
        failed = failed || command->error;
    }
    lock.unlock();
    sleep_until(end);
    return failed ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS;
}

}  // namespace

State& state() {
    static State& only = *new State;
    return only;
}

CommandRef command_of(cl_event event) {
    const auto found = state().events.find(event);
    return found == state().events.end() ? nullptr : found->second.command;
}

cl_event hand_out(const CommandRef& command) {
    state().events[command->handle()] = {command, 1};
    return command->handle();
}

void schedule(const CommandRef& command, const Callback& callback) {
    Nanoseconds time = command->end;
    if (!command->error && callback.status != CL_COMPLETE) {
        time = callback.status == CL_RUNNING ? command->start : command->submitted;
    }
    const cl_int status = command->error ? command->error : callback.status;
    call_at(time, [command, callback, status] {
        callback.call(command->handle(), status, callback.user);
        release_event(command->handle());
    });
}

void set_times(const CommandRef& command, std::vector<CommandRef>& next) {
    command->is_timed = true;
    for (const Dependent& dependent : std::exchange(command->dependents, {})) {
        --dependent.command->missing;
        depend(dependent.command, command, dependent.inherits);
        if (dependent.command->missing == 0) {
            next.push_back(dependent.command);
        }
    }
    for (const Callback& callback : std::exchange(command->callbacks, {})) {
        schedule(command, callback);
    }
    const auto queue = state().queues.find(command->queue);
    if (queue != state().queues.end()) {
        auto& open = queue->second.open;
        open.erase(std::remove(open.begin(), open.end(), command), open.end());
        queue->second.end = std::max(queue->second.end, command->end);
        if (queue->second.is_released && open.empty()) {
            drop(command->queue);
        }
    }
    state().timed.notify_all();
}

void run(Lock& lock, std::vector<CommandRef> next) {
    while (!next.empty()) {
        const CommandRef command = next.front();
        next.erase(next.begin());
        Outcome outcome = {command->error, 0};
        lock.unlock();
        command->submitted = now();
        if (!outcome.error && command->work) {
            outcome = command->work(command->is_late);
        }
        command->work = nullptr;  // what it keeps is released
        lock.lock();
        command->error = outcome.error;
        command->start = std::max(command->submitted, command->ready);
        const bool is_kernel = command->type == CL_COMMAND_NDRANGE_KERNEL;
        if (is_kernel) {
            command->start = std::max(command->start, state().device_end);
        }
        command->end = command->start + outcome.time;
        if (is_kernel) {
            state().device_end = command->end;
        }
        set_times(command, next);
    }
}

cl_int enqueue(cl_command_queue handle, cl_uint type, WaitList waits, bool blocking, cl_event* event,
               Work work) {
    Lock lock(state().mutex);
    Queue* queue = queue_of(handle);
    if (!queue) {
        return CL_INVALID_COMMAND_QUEUE;
    }
    std::vector<CommandRef> named;
    if (!commands_of(waits, named)) {
        return CL_INVALID_EVENT_WAIT_LIST;
    }
    const auto command = std::make_shared<Command>();
    command->queue = handle;
    command->context = queue->context;
    command->type = type;
    command->is_profiled = queue->properties & CL_QUEUE_PROFILING_ENABLE;
    command->work = std::move(work);
    command->queued = now();
    for (const CommandRef& one : named) {
        depend(command, one, true);
    }
    if (queue->last) {
        depend(command, queue->last, false);
    }
    const bool is_fence = type == CL_COMMAND_MARKER || type == CL_COMMAND_BARRIER;
    if (is_fence && named.empty()) {
        command->ready = std::max(command->ready, queue->end);
        for (const CommandRef& one : queue->open) {
            depend(command, one, false);
        }
    }
    const bool in_order = !(queue->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    if (in_order || type == CL_COMMAND_BARRIER) {
        queue->last = command;
    }
    queue->open.push_back(command);
    command->is_late = command->missing > 0;
    if (!command->is_late) {
        const bool may_fail = !command->error;
        run(lock, {command});
        if (may_fail && command->error) {
            return command->error;  // of the call itself
        }
    }
    if (event) {
        *event = hand_out(command);
    }
    return blocking ? wait(lock, {command}) : CL_SUCCESS;
}

cl_int finish(cl_command_queue handle) {
    Lock lock(state().mutex);
    const Queue* queue = queue_of(handle);
    if (!queue) {
        return CL_INVALID_COMMAND_QUEUE;
    }
    Nanoseconds end = queue->end;
    const std::vector<CommandRef> open = queue->open;
    for (const CommandRef& command : open) {
        state().timed.wait(lock, [&] { return command->is_timed; });
        end = std::max(end, command->end);
    }
    lock.unlock();
    sleep_until(end);
    return CL_SUCCESS;
}

cl_int wait_for(WaitList events) {
    Lock lock(state().mutex);
    std::vector<CommandRef> commands;
    return commands_of(events, commands) ? wait(lock, commands) : CL_INVALID_EVENT;
}

cl_int release_queue(cl_command_queue handle) {
    const Lock lock(state().mutex);
    const auto release =
        reinterpret_cast<cl_int (*)(cl_command_queue)>(driver_entry("clReleaseCommandQueue"));
    cl_uint references = 0;
    driver().get_queue_info(handle, CL_QUEUE_REFERENCE_COUNT, sizeof references, &references, nullptr);
    const auto queue = state().queues.find(handle);
    if (references != 1 || queue == state().queues.end()) {
        return release(handle);
    }
    queue->second.is_released = true;
    if (queue->second.open.empty()) {
        drop(handle);
    }
    return CL_SUCCESS;
}

}  // namespace virtual_gpu
