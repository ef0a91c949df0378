#include "affinity.hpp"

#include <unistd.h>

namespace ov_autoplace::executor {
namespace {

struct Mask {
    // The mask of the process's first thread; where it has none that fits into a set, nothing is restored.
    Mask() { known = sched_getaffinity(getpid(), sizeof(processors), &processors) == 0; }
    cpu_set_t processors;
    bool known;
};

const Mask process_mask;

}  // namespace

void use_process_affinity() {
    // Refused where the system has taken processors away since: then the thread stays where it is.
    if (process_mask.known) sched_setaffinity(0, sizeof(cpu_set_t), &process_mask.processors);
}

void keep_off(pthread_t thread, int processor) {
    if (!process_mask.known || processor < 0 || processor >= CPU_SETSIZE) return;
    cpu_set_t others = process_mask.processors;
    CPU_CLR(static_cast<size_t>(processor), &others);
    if (CPU_COUNT(&others) > 0) pthread_setaffinity_np(thread, sizeof(others), &others);
}

ProcessAffinity::ProcessAffinity() : m_known(sched_getaffinity(0, sizeof(m_before), &m_before) == 0) {
    use_process_affinity();
}

ProcessAffinity::~ProcessAffinity() {
    if (m_known) sched_setaffinity(0, sizeof(m_before), &m_before);
}

}  // namespace ov_autoplace::executor
