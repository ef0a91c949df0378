// Ops by name, for those who ask afterwards what was run.
#pragma once

#include <memory>
#include <string>

#include "../executor/executor.hpp"

namespace ov_autoplace {

// That an op of this name has this executor; a later one of the same name takes its place.
void remember(const std::string& op, const std::shared_ptr<executor::Executor>& executor);

// JSON as described in schedule_api.h, or an empty text where no op of this name is compiled.
std::string profile_of(const std::string& op);
std::string lanes_of(const std::string& op);

}  // namespace ov_autoplace
