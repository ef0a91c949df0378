// How much memory this process holds.
#pragma once

#include <cstdint>

namespace ov_autoplace {

// Bytes of this process in memory: its heap, from which everything free is given back first, and what it has
// mapped of files, such as weights that are used where the file has them. Libraries and other code are left
// out: the first model that needs them would seem to be larger than the next. 0 where nobody tells.
std::uint64_t resident_bytes();

}  // namespace ov_autoplace
