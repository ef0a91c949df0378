#include "devices.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <openvino/runtime/core.hpp>
#include <vector>

#include "log.hpp"

namespace ov_autoplace {
namespace {

std::string kind_of(const std::string& device) { return device.substr(0, device.find('.')); }

// Asks every plugin, which loads its library: done once, and only for models that name a GPU or an NPU.
const std::vector<std::string>& available_devices() {
    static const std::vector<std::string> devices = ov::Core().get_available_devices();
    return devices;
}

std::string find_here(const std::string& annotated) {
    const auto kind = kind_of(annotated);
    if (kind != "GPU" && kind != "NPU") return annotated;
    const auto& here = available_devices();
    const auto is_here = [&](const std::string& device) {
        return std::find(here.begin(), here.end(), device) != here.end();
    };
    if (is_here(annotated)) return annotated;
    const auto same_kind =
        std::find_if(here.begin(), here.end(), [&](const auto& device) { return kind_of(device) == kind; });
    if (same_kind == here.end()) {
        warn("the model is annotated for " + annotated +
             ", which this machine does not have; its part runs on CPU");
        return "CPU";
    }
    // Without a number the first one is meant, which is also how OpenVINO lists an only one.
    const bool first = annotated == kind || annotated == kind + ".0";
    if (!first) {
        warn("the model is annotated for " + annotated +
             ", which this machine does not have; its part runs on " + *same_kind);
    }
    return *same_kind;
}

}  // namespace

std::string device_here(const std::string& annotated) {
    static std::mutex mutex;
    static std::map<std::string, std::string> known;
    const std::lock_guard lock(mutex);
    const auto found = known.find(annotated);
    if (found != known.end()) return found->second;
    return known[annotated] = find_here(annotated);
}

}  // namespace ov_autoplace
