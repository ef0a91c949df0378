// The one error of everything that runs models.
#pragma once

#include <stdexcept>

namespace ov_autoplace {

// What a device, or OpenVINO on its behalf, refused or failed to do.
class ProfilerError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

}  // namespace ov_autoplace
