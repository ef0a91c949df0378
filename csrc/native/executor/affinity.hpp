// The processors that this process may use, whatever OpenVINO has bound single threads to.
#pragma once

#include <pthread.h>
#include <sched.h>

namespace ov_autoplace::executor {

// The processors of the process's first thread at the time that this is made; see affinity.cpp for which time
// that should be.
class ProcessMask {
public:
    ProcessMask();
    // Lets the calling thread run on all of them. A thread inherits the mask of the one that makes it, and
    // threads of OpenVINO's streams are bound to a core each.
    void apply() const;
    // Lets a thread run on all of them but one, if there is another. A thread that is woken on the processor
    // of the one that wakes it waits there until that one sleeps, though others are free.
    void keep_off(pthread_t thread, int processor) const;

private:
    cpu_set_t m_processors;
    bool m_known;
};

// Applies a mask to the calling thread until the end of a scope, for what makes threads of its own.
class MaskedScope {
public:
    explicit MaskedScope(const ProcessMask& mask);
    ~MaskedScope();
    MaskedScope(const MaskedScope&) = delete;
    MaskedScope& operator=(const MaskedScope&) = delete;

private:
    cpu_set_t m_before;
    bool m_known;
};

}  // namespace ov_autoplace::executor
