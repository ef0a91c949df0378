// The one error of everything that runs models.
#pragma once

#include <exception>
#include <stdexcept>

namespace ov_autoplace {

// What a device, or OpenVINO on its behalf, refused or failed to do.
class ProfilerError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// Runs `action` and gives whatever OpenVINO throws one type. Its own classes cannot be relied on here:
// plugins are loaded at run time and some throw types of their own.
template <typename Action>
auto guarded(Action&& action) {
    try {
        return action();
    } catch (const ProfilerError&) {
        throw;
    } catch (const std::exception& error) {
        throw ProfilerError(error.what());
    }
}

}  // namespace ov_autoplace
