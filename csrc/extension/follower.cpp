#include "follower.hpp"

#include <mutex>

#include "gaps.hpp"
#include "marks.hpp"

namespace ov_autoplace {
namespace {

// A follower without any mark belongs to a model that somebody freed of its annotation.
bool needs_help(const ov::Node& op) { return has_affinity(op) && has_gap_around(op); }

}  // namespace

void FollowerBase::after_validation(ov::Node& op) {
    mark(op);
    if (needs_help(op)) fill_gaps_around(op);
}

void FollowerBase::after_cloning(const ov::Node& original, const ov::Node& clone) {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    if (!needs_help(original)) return;
    // Ops were added and the model was not validated since. Those before this op have been cloned; those
    // after it have not, and get their devices in the original. Threads that clone it at the same time find
    // them there, because each comes by here before it clones an op behind this one.
    fill_gaps_before(clone, affinity(original));
    fill_gaps_after(original);
}

}  // namespace ov_autoplace
