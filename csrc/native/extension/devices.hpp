// The devices of this machine under the names that annotations use.
#pragma once

#include <string>

namespace ov_autoplace {

// The device of this machine that stands for `annotated`.
//
// `GPU` and `GPU.0` are one device, under the name that OpenVINO lists here; a GPU or NPU that is missing is
// replaced by another one of its kind, else by the CPU, which OpenVINO's log tells once per process. Names of
// other kinds are a program's own, registered with its own Core, and stay as they are.
std::string device_here(const std::string& annotated);

}  // namespace ov_autoplace
