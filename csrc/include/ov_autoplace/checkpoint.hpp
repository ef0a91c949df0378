// How whoever embeds the core interrupts work that takes long.
#pragma once

#include <chrono>
#include <functional>

namespace ov_autoplace {

// Called now and then from long-running work; it interrupts the work by throwing.
using Checkpoint = std::function<void()>;

// Tells when it is time for the next checkpoint.
class CheckpointTimer {
public:
    bool due() {
        const auto now = std::chrono::steady_clock::now();
        if (now - m_last < kInterval) {
            return false;
        }
        m_last = now;
        return true;
    }

private:
    static constexpr std::chrono::milliseconds kInterval{50};

    std::chrono::steady_clock::time_point m_last = std::chrono::steady_clock::now();
};

}  // namespace ov_autoplace
