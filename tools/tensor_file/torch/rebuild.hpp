// Storages and tensors of a PyTorch pickle.
#pragma once

#include <string>

#include "tensor_file/torch/arguments.hpp"
#include "tensor_file/torch/objects.hpp"

namespace samebits::tensor_file {

/// Adds the tensor of _rebuild_tensor(storage, offset, size, stride, ...).
/// @param typed_by_argument  whether argument 6 is the dtype (_rebuild_tensor_v3)
/// @throws file_error  (malformed) if the tensor exceeds its storage
/// @throws file_error  (unsupported) for more than 1000000 tensors
object_id rebuild_tensor(object_store& objects, const call_arguments& arguments,
                         bool typed_by_argument);

/// Adds a tensor whose elements are not read.
object_id add_unread_tensor(object_store& objects, const std::string& reason);

}  // namespace samebits::tensor_file
