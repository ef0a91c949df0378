// What is behind queues and events while kernels are paced; timeline.hpp says how it works.
#pragma once

#include <condition_variable>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "timeline.hpp"

namespace virtual_gpu {

struct Callback {
    cl_int status;
    EventCallback call;
    void* user;
};

struct Dependent {
    CommandRef command;
    bool inherits;  // fails with what it waits for: that stands in its wait list, and not just before it in
                    // its queue
};

struct Command {
    cl_event handle() { return reinterpret_cast<cl_event>(this); }

    cl_command_queue queue = nullptr;  // null for a user event
    cl_context context = nullptr;
    cl_uint type = CL_COMMAND_USER;
    bool is_profiled = false;
    bool is_late = false;
    Work work;

    std::size_t missing = 0;  // commands whose end is not known, of those that this one waits for
    Nanoseconds ready = 0;    // latest end of the others
    std::vector<Dependent> dependents;
    std::vector<Callback> callbacks;  // to be made once the times are known

    bool is_timed = false;  // from then on nothing changes
    cl_int error = CL_SUCCESS;
    Nanoseconds queued = 0, submitted = 0, start = 0, end = 0;
};

struct Queue {
    cl_context context = nullptr;
    cl_ulong properties = 0;
    CommandRef last;               // what the next command waits for: the one before it, or a barrier
    std::vector<CommandRef> open;  // commands whose end is not known
    Nanoseconds end = 0;           // latest end of the others
    bool is_released = false;      // by the caller; it goes when no command is open any more
};

struct Handle {
    CommandRef command;
    cl_uint references;
};

struct State {
    std::mutex mutex;
    std::condition_variable timed;
    std::unordered_map<cl_command_queue, Queue> queues;
    std::unordered_map<cl_event, Handle> events;  // those that a caller can name
    Nanoseconds device_end = 0;                   // of the last kernel
};

State& state();  // never destroyed: the plugin releases events while the process ends

using Lock = std::unique_lock<std::mutex>;

// All of these want the state's mutex to be held.

// Null when there is none of that name.
CommandRef command_of(cl_event event);

// Makes a command known to callers, with one reference.
cl_event hand_out(const CommandRef& command);

// The end of a command is known now. Commands that waited for nothing else are added to `next`.
void set_times(const CommandRef& command, std::vector<CommandRef>& next);

// Does these commands and what only waited for them, in the calling thread and without the mutex.
void run(Lock& lock, std::vector<CommandRef> next);

// Has the callback made when the command, whose times are known, reaches the callback's status.
void schedule(const CommandRef& command, const Callback& callback);

}  // namespace virtual_gpu
