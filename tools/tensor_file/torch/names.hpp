// The names of the tensors in a PyTorch file: their paths through its containers.
#pragma once

#include "tensor_file/tensor_info.hpp"
#include "tensor_file/torch/objects.hpp"

namespace samebits::tensor_file {

/// The tensors in `root`, in the order of its containers: "optimizer.state.3.exp_avg" is in the
/// dict of the key "optimizer" that of "state", its entry 3, and there that of "exp_avg". Storages,
/// names of modules and inert objects are listed with `unread` set; other values are left out.
///
/// @throws file_error  (unsupported) if containers are nested more than 100 deep, hold more than
///   10^7 objects or 10^6 tensors by all their paths, if names have more than 4096 bytes or 256 MiB
///   together, or if two tensors have one name
/// @throws file_error  (malformed) if a name is not UTF-8
std::vector<tensor_info> named_tensors(const object_store& objects, object_id root);

}  // namespace samebits::tensor_file
