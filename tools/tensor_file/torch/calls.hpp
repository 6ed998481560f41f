// What the calls in a PyTorch pickle mean: a table of names. No other name can be called.
#pragma once

#include "tensor_file/torch/arguments.hpp"

namespace samebits::tensor_file {

/// Adds a name of a module.
object_id add_global(object_store& objects, std::string_view module, std::string_view name);

/// Adds an object of a class that is listed but not read.
object_id add_inert(object_store& objects, std::string_view module, std::string_view name);

/// The object that a call returns.
/// @throws file_error  (unsupported) if the name is not in the table
/// @throws file_error  (malformed) if the arguments are not those of the name
object_id call(object_store& objects, object_id callee, object_id arguments);

/// The object that `callee.__new__(callee, *arguments)` returns: as call(), but a dict is empty.
/// @throws file_error  as call(); (unsupported) for a dict with arguments
object_id make(object_store& objects, object_id callee, object_id arguments);

/// Attributes of an object are skipped.
/// @throws file_error  (malformed) if the object has none; (unsupported) if they replace a tensor's
///   storage
void require_buildable(const object& to, const object& state);

/// The storage, or the class, of a persistent id.
/// @throws file_error  (malformed) if the id breaks a rule
/// @throws file_error  (unsupported) for other classes of storages
object_id add_storage(object_store& objects, object_id persistent_id);

/// Adds the tensor of _rebuild_tensor(storage, offset, size, stride, ...).
/// @param typed_by_argument  whether argument 6 is the dtype (_rebuild_tensor_v3)
/// @throws file_error  (malformed) if the tensor exceeds its storage
/// @throws file_error  (unsupported) for more than 1000000 tensors
object_id rebuild_tensor(object_store& objects, const call_arguments& arguments,
                         bool typed_by_argument);

/// Adds a tensor whose elements are not read.
object_id add_unread_tensor(object_store& objects, const std::string& reason);

}  // namespace samebits::tensor_file
