#include "log.hpp"

#include <iostream>
#include <openvino/core/core_visibility.hpp>
#include <string_view>

namespace ov::util {

// Exported by libopenvino without a public header, so it may be missing in another release.
OPENVINO_API __attribute__((weak)) void log_message(std::string_view message);

}  // namespace ov::util

namespace ov_autoplace {

void warn(const std::string& sentence) {
    const auto message = "[ WARNING ] ov-autoplace: " + sentence;
    if (ov::util::log_message) {
        ov::util::log_message(message);
    } else {
        std::clog << message << std::endl;
    }
}

}  // namespace ov_autoplace
