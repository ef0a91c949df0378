// Compiled models in a cache that a program without this library made.
//
// OpenVINO's cache does not know of extensions: a program that compiles the path of an annotated model gets
// what another one left there. Ops that were compiled with this library are therefore signed, and where an
// unsigned one comes out of the cache, the model is compiled anew. GPUs and NPUs keep their parts in forms of
// their own, which no extension sees.
#pragma once

#include <openvino/core/node.hpp>

namespace ov_autoplace {

// Signs an op that is being cloned, which is how compiling begins; a cache and a file keep the signature.
void sign(ov::Node& op);

// Throws ov::Exception if this thread takes a part of a model out of HETERO's cache in which an annotated
// `op` is unsigned. OpenVINO then deletes what it has in the cache and compiles the model from its file.
void refuse_unsigned_from_cache(const ov::Node& op);

}  // namespace ov_autoplace
