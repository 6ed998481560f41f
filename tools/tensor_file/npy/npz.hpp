// NumPy's .npz files: zip archives with a .npy file for each array.
//
// numpy.savez stores the members; their elements are read from the mapped file.
// numpy.savez_compressed deflates them; a deflated member is decompressed into memory when its
// elements are first read. The CRC-32 of a member is compared at that moment, too.
#pragma once

#include "tensor_file/tensor_info.hpp"

namespace samebits::tensor_file {

/// Reads the directory and the .npy header of each member. The name of a tensor is that of its member
/// without ".npy". Members that are not read have `unread` set: other files than .npy, element types
/// that are not read, and all with an unread_reason().
/// @throws file_error  (malformed) if the archive or the header of a member breaks a rule
/// @throws file_error  (unsupported) if the archive has several parts
file_contents parse_npz(std::span<const std::byte> file);

}  // namespace samebits::tensor_file
