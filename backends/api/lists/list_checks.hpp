// Checks shared by all operations on tensor lists.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>

#include "backends/api/run_call.hpp"
#include "backends/dispatch/backend.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits::backends {

// All functions throw invalid_argument. `which` is the list's name in messages.

/// Requires that every tensor has one of the formats.
void check_list(const tensor_list& list, const char* which, std::span<const format_id> among);
/// Checks tensors as tensor_list does, with formats fp32, fp16 and bf16 in the given memory.
/// Returns their description, including the device but without tables in device memory.
std::shared_ptr<const list_data> checked_list(std::span<const matrix_view> tensors,
                                              memory_space space, const char* which);
/// Requires that `out` can be written from `in`, tensor by tensor and chunk by chunk:
/// - Both lists have equally many tensors, with equal rows and columns, in one memory.
/// - No tensor of `out` overlaps a tensor of `in`, unless both have equal elements at one position.
void check_written(const tensor_list& out, const char* out_name, const tensor_list& in,
                   const char* in_name);
/// Requires a number that is not NaN.
void check_number(float value, const char* which);

/// A tensor list and its name in messages.
struct named_list {
  const tensor_list& list;
  const char* name;
};
/// Makes the device of the lists current until the end of the scope. All lists must be on one
/// device. `memory` is further memory of the call, or null.
device_scope scope_of(std::initializer_list<named_list> lists, named_address memory, void* stream,
                      completion ends);

/// Runs an operation on a list, on the backend that `where` or the list's memory chooses. Also
/// throws unsupported.
template <class Call>
void run_on_list(operation_entry<Call> backend::*operation, const Call& call,
                 const tensor_list& list, const executor& where) {
  const backend& chosen = backend_for(operation, call, {list.space(), list.size() == 0}, where,
                                      "has no operations over lists of tensors");
  (chosen.*operation).run(call, where);
}

}  // namespace samebits::backends
