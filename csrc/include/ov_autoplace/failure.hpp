// What went wrong in one of several threads.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>

#include "ov_autoplace/profiler_error.hpp"

namespace ov_autoplace {

// The first exception that a request threw; the others are of the same kind, or follow from it.
class Failure {
public:
    void keep(std::exception_ptr thrown) {
        const std::lock_guard lock(m_mutex);
        if (!m_thrown) m_thrown = std::move(thrown);
        m_happened = true;
    }
    bool happened() const { return m_happened; }

    void rethrow() const {
        if (m_thrown) guarded([this] { std::rethrow_exception(m_thrown); });
    }

private:
    std::mutex m_mutex;
    std::atomic<bool> m_happened{false};
    std::exception_ptr m_thrown;
};

}  // namespace ov_autoplace
