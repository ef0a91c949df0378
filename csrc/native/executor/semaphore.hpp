// Where a thread waits that has nothing to do.
#pragma once

#include <semaphore.h>

namespace ov_autoplace::executor {

// A semaphore of the operating system: cheap to leave where nobody waits.
class Semaphore {
public:
    Semaphore() { sem_init(&m_semaphore, 0, 0); }
    ~Semaphore() { sem_destroy(&m_semaphore); }
    Semaphore(const Semaphore&) = delete;
    Semaphore& operator=(const Semaphore&) = delete;

    void wait() {
        while (sem_wait(&m_semaphore) != 0) {
        }
    }
    void wake() { sem_post(&m_semaphore); }

private:
    sem_t m_semaphore;
};

}  // namespace ov_autoplace::executor
