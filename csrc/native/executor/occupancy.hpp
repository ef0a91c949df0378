// How many runs are in a compiled submodel at a time.
//
// A plugin lets as many requests of a compiled model run at once as it has streams. The others sleep in it,
// and waking them costs more than many a submodel takes, so a run that finds one occupied begins another.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace ov_autoplace::executor {

class Occupancy {
public:
    explicit Occupancy(const std::vector<uint32_t>& capacities) : m_slots(capacities.size()) {
        for (size_t i = 0; i < capacities.size(); ++i) m_slots[i].capacity = capacities[i];
    }

    bool is_free(size_t submodel) const {
        const auto& slots = m_slots[submodel];
        return slots.inside.load(std::memory_order_relaxed) < slots.capacity;
    }
    // Also where it is not free: the plugin makes the thread wait.
    void enter(size_t submodel) { m_slots[submodel].inside.fetch_add(1, std::memory_order_relaxed); }
    bool try_enter(size_t submodel) {
        auto& slots = m_slots[submodel];
        if (slots.inside.fetch_add(1, std::memory_order_relaxed) < slots.capacity) return true;
        leave(submodel);
        return false;
    }
    void leave(size_t submodel) { m_slots[submodel].inside.fetch_sub(1, std::memory_order_relaxed); }

private:
    struct alignas(64) Slots {
        std::atomic<uint32_t> inside{0};
        uint32_t capacity = 1;
    };
    std::vector<Slots> m_slots;
};

}  // namespace ov_autoplace::executor
