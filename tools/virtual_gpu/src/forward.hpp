// The calls that go to the runtime unchanged.
#pragma once

namespace virtual_gpu {

// Looks all of them up; false when one is missing.
bool fill_forward_table();

}  // namespace virtual_gpu
