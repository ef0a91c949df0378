#include "executor.hpp"

#include <pthread.h>

namespace ov_autoplace::executor {
namespace {

// How often this process was forked from the one that loaded the library.
std::atomic<unsigned> generation{0};
const int watching = pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1); });

}  // namespace

Executor::Executor(Plan plan, const std::vector<Serialized>& files)
    : m_plan(std::move(plan)),
      m_compiled(compile(m_plan, files)),
      m_pool(new ThreadPool(m_plan, m_compiled)),
      m_generation(generation.load()) {
    static_cast<void>(watching);
}

Executor::~Executor() {
    // The threads of a pool from before a fork are not in this process, and cannot be joined.
    if (m_generation.load() == generation.load()) delete m_pool.load();
}

ThreadPool& Executor::pool() {
    const auto now = generation.load(std::memory_order_relaxed);
    if (m_generation.load(std::memory_order_acquire) != now) {
        // The old one's locks may be held by threads that do not exist here: it is left as it is.
        static std::mutex* mutex = new std::mutex;
        const std::lock_guard lock(*mutex);
        if (m_generation.load() != now) {
            m_pool.store(new ThreadPool(m_plan, m_compiled));
            m_generation.store(now, std::memory_order_release);
        }
    }
    return *m_pool.load(std::memory_order_acquire);
}

void Executor::run(const ov::TensorVector& inputs, ov::TensorVector& outputs) { pool().run(inputs, outputs); }

}  // namespace ov_autoplace::executor
