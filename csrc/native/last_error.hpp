// What went wrong in a function of plain C, for whoever called it.
#pragma once

#include <string>

namespace ov_autoplace {

// The sentence of this thread's last call that failed, see ov_autoplace_last_error().
inline thread_local std::string last_error;

}  // namespace ov_autoplace
