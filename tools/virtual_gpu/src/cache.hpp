// Built programs in a folder that processes share: this runtime's compiler takes seconds for what another
// process, or an earlier compilation in this one, has compiled already.
#pragma once

#include <string>

namespace virtual_gpu {

// Of a text, in hexadecimal: the same in every process and with every standard library.
std::string hash_of(const std::string& text);

// Where what is built from one source with the same options is kept. A file starts with the whole key, so
// that neither two keys with one hash nor a file that was cut off is taken for it.
class CacheEntry {
public:
    // An empty `folder` keeps nothing. `key` tells all that the binary depends on.
    CacheEntry(const std::string& folder, std::string key);

    // The binary, or an empty string when there is none.
    std::string load() const;

    // Other processes see all of it or nothing. Where it cannot be written, nothing is kept.
    void store(const std::string& binary) const;

private:
    std::string header(std::size_t binary_size) const;

    std::string path_;
    std::string key_;
};

}  // namespace virtual_gpu
