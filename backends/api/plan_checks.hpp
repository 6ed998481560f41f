// Checks that the operations over lists of tensors share.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <span>

#include "backends/dispatch/backend.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits::backends {

// All of these throw invalid_argument; `which` names the plan.

inline constexpr std::array wide_plan_formats = {format_id::fp32, format_id::fp16, format_id::bf16};

/// Every tensor has one of the formats.
void check_plan(const tensor_list& plan, const char* which, std::span<const format_id> among);
/// A list of tensors in that memory in fp32, fp16 and bf16, as a plan may hold it; its description,
/// with its device but without tables in device memory.
std::shared_ptr<const plan_data> checked_list(std::span<const matrix_view> tensors,
                                              memory_space space, const char* which);
/// `out` may be written from `in`, tensor by tensor and chunk by chunk: as many tensors, with the
/// same rows and columns, in the same memory; no tensor of out overlaps one of in, unless both are
/// the same elements at the same position.
void check_written(const tensor_list& out, const char* out_name, const tensor_list& in,
                   const char* in_name);
/// Not a NaN.
void check_number(float value, const char* which);

/// A plan with its name in messages.
struct named_plan {
  const tensor_list& plan;
  const char* name;
};
/// The device of the plans of a call, current until the end of the scope; all of them must lie on
/// one. `memory`: further memory of the call, or null.
device_scope scope_of(std::initializer_list<named_plan> plans, named_address memory, void* stream,
                      completion ends);

/// The backend that works on a plan; throws unsupported, too.
const backend& plan_backend(const tensor_list& plan, const executor& where);

}  // namespace samebits::backends
