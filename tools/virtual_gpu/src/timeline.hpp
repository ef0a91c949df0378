// Paced queues: what each command takes is known when it is enqueued, so a queue is no thread but a line of
// times. A kernel is a stretch of it; data is moved when its turn in the order has come, in the thread that
// brings that about; and who waits for a command sleeps until its end.
//
// Kernels of all queues take turns on the device, in the order in which they become ready.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "opencl.hpp"
#include "pace.hpp"

namespace virtual_gpu {

struct Outcome {
    cl_int error;
    Nanoseconds time;  // that the command takes
};

// Done once everything before it in the order is. `late`: the call that enqueued it has returned.
using Work = std::function<Outcome(bool late)>;

struct Command;
using CommandRef = std::shared_ptr<Command>;

// What a command waits for, as OpenCL's calls take it.
struct WaitList {
    cl_uint count;
    const cl_event* events;
};

// Enqueue a command. Its event, if one is wanted, is the caller's to release.
//
// Args:
//     type: CL_COMMAND_...; a marker or barrier without a wait list waits for all that came before.
//     blocking: Return when the command has ended.
cl_int enqueue(cl_command_queue queue, cl_uint type, WaitList waits, bool blocking, cl_event* event,
               Work work);

cl_int finish(cl_command_queue queue);
cl_int wait_for(WaitList events);
cl_int release_queue(cl_command_queue queue);

cl_event create_user_event(cl_context context);
cl_int set_user_status(cl_event event, cl_int status);

// The call is made by a thread of its own, not before the event has that status.
cl_int set_callback(cl_event event, cl_int status, EventCallback callback, void* user);

cl_int retain_event(cl_event event);
cl_int release_event(cl_event event);
cl_int event_info(cl_event event, cl_uint query, std::size_t room, void* out, std::size_t* needed);
cl_int profiling_info(cl_event event, cl_uint query, std::size_t room, void* out, std::size_t* needed);

}  // namespace virtual_gpu
