// Warnings through OpenVINO's log, which a program can redirect with ov::util::set_log_callback.
#pragma once

#include <string>

namespace ov_autoplace {

void warn(const std::string& sentence);

}  // namespace ov_autoplace
