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
    explicit Occupancy(const std::vector<uint32_t>& capacities) : m_rooms(capacities.size()) {
        for (size_t i = 0; i < capacities.size(); ++i) m_rooms[i].capacity = capacities[i];
    }

    bool is_free(size_t submodel) const {
        const auto& room = m_rooms[submodel];
        return room.inside.load(std::memory_order_relaxed) < room.capacity;
    }
    // Also where it is not free: the plugin makes the thread wait.
    void enter(size_t submodel) { m_rooms[submodel].inside.fetch_add(1, std::memory_order_relaxed); }
    bool try_enter(size_t submodel) {
        auto& room = m_rooms[submodel];
        if (room.inside.fetch_add(1, std::memory_order_relaxed) < room.capacity) return true;
        leave(submodel);
        return false;
    }
    void leave(size_t submodel) { m_rooms[submodel].inside.fetch_sub(1, std::memory_order_relaxed); }

private:
    struct alignas(64) Room {
        std::atomic<uint32_t> inside{0};
        uint32_t capacity = 1;
    };
    std::vector<Room> m_rooms;
};

}  // namespace ov_autoplace::executor
