// How the executor says no.
#pragma once

#include <openvino/core/except.hpp>
#include <sstream>

namespace ov_autoplace::executor {

// An ov::Exception whose text is the sentence alone, without file, line or condition.
class Refusal : public ov::Exception {
public:
    explicit Refusal(const std::string& sentence) : ov::Exception(sentence) {}
};

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
    std::ostringstream sentence;
    (sentence << ... << parts);
    throw Refusal(sentence.str());
}

// The first line that says something of what OpenVINO threw: it puts files and conditions around it.
std::string reason_of(const std::exception& error);

}  // namespace ov_autoplace::executor
