// GGUF files, versions 2 and 3, little-endian: the header parser.
//
//   "GGUF" version, number of tensors, number of pairs   pairs   tensor infos   padding   data
//   pair: key, type, value        tensor info: name, dimensions (fastest first), type, offset
//
// Source: ggml, docs/gguf.md, "File Structure"; type numbers: ggml.h, enum ggml_type.
#pragma once

#include "tensor_file/tensor_info.hpp"

namespace samebits::tensor_file {

/// Reads the header of a complete GGUF file: all tensors in the order of their data. Tensors of
/// other block types than Q8_0 and Q4_0 (Q4_K, MXFP4, ...) have `unread` set, and name, shape and
/// count.
///
/// @throws file_error  (malformed) if the header breaks a rule, if two tensors have the same name
///   or share bytes, or if the data of a tensor exceeds the file
/// @throws file_error  (unsupported) for other versions and big-endian files
file_contents parse_gguf(std::span<const std::byte> file);

}  // namespace samebits::tensor_file
