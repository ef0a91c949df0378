#include "core.hpp"

#include <map>
#include <mutex>

#include "refuse.hpp"

namespace ov_autoplace::executor {
namespace {

struct Registry {
    std::mutex mutex;
    std::map<std::string, std::string> plugins;
    std::weak_ptr<ov::Core> core;
};

// Never destroyed: models may be compiled and released while the process ends.
Registry& registry() {
    static auto* const the_one = new Registry;
    return *the_one;
}

void add(ov::Core& core, const std::string& device, const std::string& library) {
    try {
        core.register_plugin(library, device);
    } catch (const ov::Exception&) {
        // A new Core may know the device already, from a plugins.xml: that one stays.
        if (core.get_versions(device).empty()) throw;
    }
}

}  // namespace

std::shared_ptr<ov::Core> shared_core() {
    auto& all = registry();
    const std::lock_guard lock(all.mutex);
    auto core = all.core.lock();
    if (!core) {
        core = std::make_shared<ov::Core>();
        for (const auto& [device, library] : all.plugins) add(*core, device, library);
        all.core = core;
    }
    return core;
}

void register_plugin(const std::string& device, const std::string& library) {
    auto& all = registry();
    const std::lock_guard lock(all.mutex);
    const auto [known, added] = all.plugins.emplace(device, library);
    if (!added) {
        if (known->second == library) return;
        refuse("device ", device, " is that of ", known->second, " and cannot become that of ", library);
    }
    try {
        if (const auto core = all.core.lock()) add(*core, device, library);
    } catch (...) {
        all.plugins.erase(known);
        throw;
    }
}

}  // namespace ov_autoplace::executor
