// Events of paced queues, as OpenCL's calls see them.
#include "answer.hpp"
#include "commands.hpp"

namespace virtual_gpu {
namespace {

cl_int status_of(const Command& command) {
    const Nanoseconds time = now();
    if (!command.is_timed || time < command.start) {
        return CL_SUBMITTED;
    }
    return time < command.end ? CL_RUNNING : command.error;
}

template <typename Value>
cl_int answer_with(Value value, std::size_t room, void* out, std::size_t* needed) {
    return answer(&value, sizeof value, room, out, needed);
}

}  // namespace

cl_event create_user_event(cl_context context) {
    const std::lock_guard<std::mutex> guard(state().mutex);
    const auto command = std::make_shared<Command>();
    command->context = context;
    return hand_out(command);
}

cl_int set_user_status(cl_event event, cl_int status) {
    Lock lock(state().mutex);
    const CommandRef command = command_of(event);
    if (!command || command->type != CL_COMMAND_USER) {
        return CL_INVALID_EVENT;
    }
    if (status > 0) {
        return CL_INVALID_VALUE;
    }
    if (command->is_timed) {
        return CL_INVALID_OPERATION;
    }
    command->error = status;
    command->submitted = command->start = command->end = now();
    std::vector<CommandRef> next;
    set_times(command, next);
    run(lock, next);
    return CL_SUCCESS;
}

cl_int set_callback(cl_event event, cl_int status, EventCallback callback, void* user) {
    const std::lock_guard<std::mutex> guard(state().mutex);
    const CommandRef command = command_of(event);
    if (!command) {
        return CL_INVALID_EVENT;
    }
    if (!callback || status < CL_COMPLETE || status > CL_SUBMITTED) {
        return CL_INVALID_VALUE;
    }
    ++state().events[event].references;  // until the call has been made
    const Callback made = {status, callback, user};
    if (command->is_timed) {
        schedule(command, made);
    } else {
        command->callbacks.push_back(made);
    }
    return CL_SUCCESS;
}

cl_int retain_event(cl_event event) {
    const std::lock_guard<std::mutex> guard(state().mutex);
    const auto found = state().events.find(event);
    if (found == state().events.end()) {
        return CL_INVALID_EVENT;
    }
    ++found->second.references;
    return CL_SUCCESS;
}

cl_int release_event(cl_event event) {
    const std::lock_guard<std::mutex> guard(state().mutex);
    const auto found = state().events.find(event);
    if (found == state().events.end()) {
        return CL_INVALID_EVENT;
    }
    if (--found->second.references == 0) {
        state().events.erase(found);
    }
    return CL_SUCCESS;
}

cl_int event_info(cl_event event, cl_uint query, std::size_t room, void* out, std::size_t* needed) {
    const std::lock_guard<std::mutex> guard(state().mutex);
    const auto found = state().events.find(event);
    if (found == state().events.end()) {
        return CL_INVALID_EVENT;
    }
    const Command& command = *found->second.command;
    switch (query) {
        case CL_EVENT_COMMAND_QUEUE:
            return answer_with(command.queue, room, out, needed);
        case CL_EVENT_COMMAND_TYPE:
            return answer_with(command.type, room, out, needed);
        case CL_EVENT_REFERENCE_COUNT:
            return answer_with(found->second.references, room, out, needed);
        case CL_EVENT_COMMAND_EXECUTION_STATUS:
            return answer_with(status_of(command), room, out, needed);
        case CL_EVENT_CONTEXT:
            return answer_with(command.context, room, out, needed);
        default:
            return CL_INVALID_VALUE;
    }
}

cl_int profiling_info(cl_event event, cl_uint query, std::size_t room, void* out, std::size_t* needed) {
    const std::lock_guard<std::mutex> guard(state().mutex);
    const CommandRef command = command_of(event);
    if (!command) {
        return CL_INVALID_EVENT;
    }
    if (!command->is_profiled || !command->is_timed || now() < command->end || command->error) {
        return CL_PROFILING_INFO_NOT_AVAILABLE;
    }
    switch (query) {
        case CL_PROFILING_COMMAND_QUEUED:
            return answer_with(command->queued, room, out, needed);
        case CL_PROFILING_COMMAND_SUBMIT:
            return answer_with(command->submitted, room, out, needed);
        case CL_PROFILING_COMMAND_START:
            return answer_with(command->start, room, out, needed);
        case CL_PROFILING_COMMAND_END:
        case CL_PROFILING_COMMAND_COMPLETE:
            return answer_with(command->end, room, out, needed);
        default:
            return CL_INVALID_VALUE;
    }
}

}  // namespace virtual_gpu
