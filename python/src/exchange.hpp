// DLPack 1.3's exchange table, a C interface that torch 2.10 and later offers on its tensor types. It
// describes tensors without owning them, allocates tensors, and returns the current stream.
#pragma once

#include "dlpack.hpp"

namespace samebits::python {

/// The exchange table of a tensor type.
struct exchange_table;

/// Returns the exchange table of a torch tensor's type. Null for other types, for older versions of
/// torch, and for types whose tensors have no memory of their own.
///
/// @param helper  the module samebits.arrays
const exchange_table* exchange_table_of(nb::handle object, nb::handle helper);

/// Describes a tensor. The description holds while the tensor exists and is not resized.
///
/// @throws what the tensor's library raises, for sparse tensors for example.
dl_tensor describe_tensor(const exchange_table& table, nb::handle object);

/// Returns the stream on which the tensor's library enqueues work of a device at present.
void* current_stream(const exchange_table& table, dl_device_id device);

/// Makes a C-contiguous tensor in memory of the table's library.
///
/// @throws torch.OutOfMemoryError or RuntimeError, with torch's message.
nb::object new_tensor(const exchange_table& table, int dims, const std::int64_t* shape,
                      dl_data_type type, dl_device_id device);

}  // namespace samebits::python
