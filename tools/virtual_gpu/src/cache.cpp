#include "cache.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <utility>

namespace virtual_gpu {

// FNV-1a.
std::string hash_of(const std::string& text) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : text) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
    return digits;
}

CacheEntry::CacheEntry(const std::string& folder, std::string key) : key_(std::move(key)) {
    if (!folder.empty()) {
        path_ = folder + "/" + hash_of(key_) + ".program";
    }
}

std::string CacheEntry::load() const {
    if (path_.empty()) {
        return {};
    }
    std::ifstream file(path_, std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(file), {}};
    const std::size_t end = content.find('\n');
    const std::size_t start = end == std::string::npos ? end : end + 1 + key_.size();
    if (start > content.size() || content.compare(0, start, header(content.size() - start)) != 0) {
        return {};
    }
    return content.substr(start);
}

void CacheEntry::store(const std::string& binary) const {
    if (path_.empty() || binary.empty()) {
        return;
    }
    static std::atomic<int> count{0};
    const std::string written = path_ + "." + std::to_string(getpid()) + "." + std::to_string(count++);
    std::ofstream file(written, std::ios::binary);
    file << header(binary.size()) << binary;
    file.close();
    if (!file || std::rename(written.c_str(), path_.c_str())) {
        std::remove(written.c_str());
    }
}

std::string CacheEntry::header(std::size_t binary_size) const {
    return std::to_string(key_.size()) + " " + std::to_string(binary_size) + "\n" + key_;
}

}  // namespace virtual_gpu
