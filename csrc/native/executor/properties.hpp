// Properties of OpenVINO as a plan carries them: texts.
#pragma once

#include <map>
#include <string>

namespace ov_autoplace::executor {

using Properties = std::map<std::string, std::string>;

}  // namespace ov_autoplace::executor
