#include "sources.hpp"

#include <sstream>
#include <vector>

namespace virtual_gpu {
namespace {

// The runtime's compiler unrolls and vectorises these for minutes, and takes a fraction of a second without
// optimisation. Depthwise kernels exchange data between lanes under a condition, which is right only when
// optimised, so they are left alone.
const std::vector<std::string> kLarge = {
    "convolution_gpu_bfyx_f16",
    "convolution_gpu_bfyx_os_iyx_osv",
    "convolution_gpu_bfyx_to_bfyx_f16",
    "fully_connected_gpu_bf_io",
    "sdpa_opt__multi_reg",
};

// Where permute_f_y_axes reads what other lanes wrote into local memory.
const std::vector<std::string> kLockstepReads = {
    "ACC_VEC_TYPE res = READ_VEC(0, &transpose_buf",
    "WRITE_VEC(TO_OUTPUT_VECTOR_TYPE(DECODE_INPUT0_COMPUTE_VECTOR_TYPE(READ_VEC(0, &transpose_buf",
    "DT_OUTPUT_BLOCK_WRITE(output, output_offset, transpose_buf[",
};

bool starts(const std::string& text, std::size_t at, const std::string& with) {
    return text.compare(at, with.size(), with) == 0;
}

bool is_large(const std::string& name) {
    if (name.find("depthwise") != std::string::npos) {
        return false;
    }
    for (const auto& prefix : kLarge) {
        if (starts(name, 0, prefix)) {
            return true;
        }
    }
    return false;
}

std::size_t occurrences(const std::string& text, const std::string& what) {
    std::size_t count = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) {
        ++count;
    }
    return count;
}

void insert_before_each(std::string& text, std::size_t from, const std::string& what,
                        const std::string& add) {
    for (std::size_t at = text.find(what, from); at != std::string::npos;
         at = text.find(what, at + add.size() + what.size())) {
        text.insert(at, add);
    }
}

// Work-items are numbered along x first, as sub-groups of Intel's GPUs are.
const char* const kLinearIds = R"(
#define VG_INLINE __attribute__((overloadable, always_inline))
static inline size_t VG_INLINE vg_local_size(uint d) {
    return d == 0 ? VG_X : d == 1 ? VG_Y : d == 2 ? VG_Z : 1;
}
static inline size_t VG_INLINE vg_local_id(uint d) {
    size_t i = get_local_id(0);
    return d == 0 ? i % VG_X : d == 1 ? i / VG_X % VG_Y : d == 2 ? i / (VG_X * VG_Y) : 0;
}
static inline size_t VG_INLINE vg_global_id(uint d) {
    return get_group_id(d) * vg_local_size(d) + vg_local_id(d);
}
static inline size_t VG_INLINE vg_global_size(uint d) { return get_num_groups(d) * vg_local_size(d); }
#define get_local_size(d) vg_local_size(d)
#define get_enqueued_local_size(d) vg_local_size(d)
#define get_local_id(d) vg_local_id(d)
#define get_global_id(d) vg_global_id(d)
#define get_global_size(d) vg_global_size(d)
#define reqd_work_group_size(x, y, z) reqd_work_group_size((x) * (y) * (z), 1, 1)
#line 1
)";

}  // namespace

std::string mended(const std::string& source, bool spare_large) {
    std::string result = source;
    const std::size_t permute = result.find("(permute_f_y_axes)");
    if (permute != std::string::npos) {
        for (const auto& read : kLockstepReads) {
            insert_before_each(result, permute, read, "barrier(CLK_LOCAL_MEM_FENCE); ");
        }
    }
    const std::string entry = "__kernel void ";
    const std::string spared = "__attribute__((optnone, noinline)) ";
    for (std::size_t at = result.find(entry); spare_large && at != std::string::npos;
         at = result.find(entry, at + entry.size())) {
        const std::size_t name = at + entry.size();
        if (is_large(result.substr(name, result.find_first_of("( \n", name) - name))) {
            result.insert(at, spared);
            at += spared.size();
        }
    }
    return result;
}

std::string known_options(const std::string& options) {
    std::istringstream words(options);
    std::string result;
    for (std::string word; words >> word;) {
        if (word == "-ze-exp-register-file-size") {
            words >> word;  // its value
        } else if (!starts(word, 0, "-cl-intel-") && !starts(word, 0, "-ze-")) {
            result += word + " ";
        }
    }
    return result;
}

bool may_all_be_turned(const std::string& source) {
    const std::size_t turned = occurrences(source, "reqd_work_group_size(1,");
    return turned && turned >= occurrences(source, "__kernel void ");
}

std::string turned(const std::string& source, const LocalSize& size) {
    std::string sizes;
    for (std::size_t i = 0; i < size.size(); ++i) {
        sizes += std::string("#define VG_") + "XYZ"[i] + " " + std::to_string(size[i]) + "\n";
    }
    return sizes + kLinearIds + source;
}

}  // namespace virtual_gpu
