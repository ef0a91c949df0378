// The processors that this process may use, whatever OpenVINO has bound the current thread to.
#pragma once

#include <pthread.h>
#include <sched.h>

namespace ov_autoplace::executor {

// Lets the calling thread run wherever the process could when this library was loaded. A thread inherits
// the mask of the one that makes it, and threads of OpenVINO's streams are bound to a core each.
void use_process_affinity();

// Lets a thread run wherever the process could, but for one processor, if there is another. A thread that is
// woken on the processor of the one that wakes it waits there until that one sleeps, though others are free.
void keep_off(pthread_t thread, int processor);

// The same until the end of a scope, for what makes threads of its own.
class ProcessAffinity {
public:
    ProcessAffinity();
    ~ProcessAffinity();
    ProcessAffinity(const ProcessAffinity&) = delete;
    ProcessAffinity& operator=(const ProcessAffinity&) = delete;

private:
    cpu_set_t m_before;
    bool m_known;
};

}  // namespace ov_autoplace::executor
