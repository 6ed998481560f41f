// PyTorch's files, as torch.save writes them: the tensors in dicts, lists and tuples. Nothing in a
// file is imported, called or run.
//
// Zip format:  NAME/data.pkl, NAME/byteorder, NAME/data/0, NAME/data/1, ... (a storage each)
// Old format:  5 pickles: magic number, 1001, system, object, keys of storages
//              for each key: number of elements (8 bytes), elements
//
// Source: PyTorch 2.11, torch/serialization.py, _save and _legacy_save; torch/_utils.py.
#pragma once

#include "tensor_file/tensor_info.hpp"

namespace samebits::tensor_file {

/// Whether the file begins with the magic number of the old format.
bool is_old_torch_file(std::span<const std::byte> file);

/// Reads the pickle of a complete file, in one of the two formats: all tensors, called by their
/// paths, in the order of the pickle. Objects that are no tensors but could hold some, and tensors
/// that are not read, have `unread` set; numbers and texts are left out.
///
/// @throws file_error  (malformed) if the file breaks a rule, or a tensor exceeds its storage
/// @throws file_error  (unsupported) if the pickle has an operation or a call that reading tensors
///   does not need, if the file exceeds a limit, and for other contents of archives
file_contents parse_torch(std::span<const std::byte> file);

}  // namespace samebits::tensor_file
