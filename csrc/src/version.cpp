#include <openvino/core/version.hpp>
