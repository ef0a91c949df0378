#include "ov_autoplace/resident_bytes.hpp"

#include <malloc.h>

#include <fstream>
#include <sstream>
#include <string>

namespace ov_autoplace {
namespace {

bool is_library(const std::string& path) {
    const std::size_t ending = path.rfind(".so");
    return ending != std::string::npos && (ending + 3 == path.size() || path[ending + 3] == '.');
}

}  // namespace

std::uint64_t resident_bytes() {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    std::ifstream maps("/proc/self/smaps");
    std::uint64_t total = 0;
    bool counts = false;
    // Of each mapping a line with its addresses, permissions, offset, device, inode and path, and then lines
    // such as "Rss:   12 kB".
    for (std::string line; std::getline(maps, line);) {
        const std::size_t end = line.find(' ');
        const bool is_mapping = end == std::string::npos || end == 0 || line[end - 1] != ':';
        if (is_mapping) {
            std::istringstream words(line);
            std::string addresses, permissions, offset, device, inode, path;
            words >> addresses >> permissions >> offset >> device >> inode >> path;
            counts = permissions.find('x') == std::string::npos && !is_library(path);
        } else if (counts && line.compare(0, end, "Rss:") == 0) {
            std::uint64_t kilobytes = 0;
            std::istringstream(line.substr(end)) >> kilobytes;
            total += 1024 * kilobytes;
        }
    }
    return total;
}

}  // namespace ov_autoplace
