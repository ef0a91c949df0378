// The sanitizers replace malloc, so glibc's own heap is not set up when threads begin. OpenVINO calls
// malloc_trim where a model ends, whose first call sets that heap up without a lock: of two threads, the
// second can read it half made. It is set up here, before main and its threads.
#include <malloc.h>

namespace {

[[maybe_unused]] const int set_up = malloc_trim(0);

}  // namespace
