// The ov::Core that compiles submodels, and the plugins that were registered for it.
#pragma once

#include <memory>
#include <openvino/runtime/core.hpp>
#include <string>

namespace ov_autoplace::executor {

// One for the process, as long as somebody uses it.
std::shared_ptr<ov::Core> shared_core();

// Makes a device known to that Core, now and later. Throws ov::Exception where another library has the name.
void register_plugin(const std::string& device, const std::string& library);

}  // namespace ov_autoplace::executor
