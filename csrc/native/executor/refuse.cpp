#include "refuse.hpp"

namespace ov_autoplace::executor {
namespace {

bool says_where(const std::string& line) {
    return line.rfind("Exception from ", 0) == 0 || line.rfind("While validating ", 0) == 0 ||
           (line.rfind("Check '", 0) == 0 && line.find("' failed at ") != std::string::npos);
}

}  // namespace

std::string reason_of(const std::exception& error) {
    std::istringstream lines(error.what());
    std::string reason;
    for (std::string line; std::getline(lines, line);) {
        if (line.find_first_not_of(" \t\r") == std::string::npos || says_where(line)) continue;
        reason += (reason.empty() ? "" : " ") + line;
    }
    return reason.empty() ? "no reason given" : reason;
}

}  // namespace ov_autoplace::executor
