// When the process's mask is read.
//
// Not when this library is loaded: a program may narrow its mask after that, and means what it compiles then.
// And not when a worker starts: that is within an inference, where OpenVINO has bound the thread that waits
// for it, often the first one, to a core of its own. So it is read when submodels are compiled. OpenVINO does
// that on a thread of its own, which may be bound or have the mask of another time, while the thread that
// asked for it waits unbound; hence the first thread's mask and not the current one's. Only the mask of a
// first thread that is in a bound inference of another model at this very moment cannot be told from one
// that the program chose.
#include "affinity.hpp"

#include <unistd.h>

namespace ov_autoplace::executor {

// Where the first thread has no mask, or none that fits into a set, nothing is changed.
ProcessMask::ProcessMask() : m_known(sched_getaffinity(getpid(), sizeof(m_processors), &m_processors) == 0) {}

void ProcessMask::apply() const {
    // Refused where the system has taken processors away since: then the thread stays where it is.
    if (m_known) sched_setaffinity(0, sizeof(m_processors), &m_processors);
}

void ProcessMask::keep_off(pthread_t thread, int processor) const {
    if (!m_known || processor < 0 || processor >= CPU_SETSIZE) return;
    cpu_set_t others = m_processors;
    CPU_CLR(static_cast<size_t>(processor), &others);
    if (CPU_COUNT(&others) > 0) pthread_setaffinity_np(thread, sizeof(others), &others);
}

MaskedScope::MaskedScope(const ProcessMask& mask)
    : m_known(sched_getaffinity(0, sizeof(m_before), &m_before) == 0) {
    mask.apply();
}

MaskedScope::~MaskedScope() {
    if (m_known) sched_setaffinity(0, sizeof(m_before), &m_before);
}

}  // namespace ov_autoplace::executor
