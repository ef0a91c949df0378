#include "schedule_api.h"

#include <cstring>
#include <exception>
#include <string>

#include "../executor/core.hpp"
#include "../executor/refuse.hpp"
#include "../last_error.hpp"
#include "schedule_profile.hpp"

namespace {

using ov_autoplace::last_error;

// Answers with what `tell` says of an op: its length with the ending zero, and the text where it has room.
size_t answer(std::string (*tell)(const std::string&), const char* op, char* buffer, size_t size) {
    try {
        const auto json = tell(op);
        if (json.empty()) return 0;
        const auto needed = json.size() + 1;
        if (buffer && size >= needed) std::memcpy(buffer, json.c_str(), needed);
        return needed;
    } catch (const std::exception& error) {
        last_error = ov_autoplace::executor::reason_of(error);
        return 0;
    }
}

}  // namespace

int ov_autoplace_register_plugin(const char* name, const char* library) {
    try {
        ov_autoplace::executor::register_plugin(name, library);
        return 0;
    } catch (const std::exception& error) {
        last_error = ov_autoplace::executor::reason_of(error);
        return 1;
    }
}

size_t ov_autoplace_profile(const char* op, char* buffer, size_t size) {
    return answer(ov_autoplace::profile_of, op, buffer, size);
}

size_t ov_autoplace_lanes(const char* op, char* buffer, size_t size) {
    return answer(ov_autoplace::lanes_of, op, buffer, size);
}

const char* ov_autoplace_last_error(void) { return last_error.c_str(); }
