// Array arithmetic: the checked calls that a backend receives.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/dispatch/element.hpp"
#include "samebits/array_arithmetic.hpp"

namespace samebits::backends {

/// Maximum number of operands of an operation.
inline constexpr int max_operands = 3;

enum class flag_report : std::uint8_t { none, wanted };

/// A checked call. pitch is resolved. Unused operands have no data.
struct compute_call {
  operation op;
  const_matrix_view operands[max_operands];
  matrix_view out;
  cast_rule rule;
  random_stream random;
  std::uint64_t pitch = 0;
  flag_report report = flag_report::none;
  flags_view each;  ///< has data only if the flags of each element are wanted
  /// Host memory that receives the union of all flags, or null. A device backend then waits and
  /// allocates 4 bytes from the stream's memory pool.
  flags* all = nullptr;
  /// Device backends: 4 bytes of device memory that receive the union of all flags, or null.
  std::uint32_t* all_on_device = nullptr;
};

/// Whether the processor's own arithmetic gives the bits of this call. Requires one format, nearest
/// even and no flags. proved(op, format) tells whether an operation passed its proof
/// (docs/decisions/0021-arithmetic-by-the-processor.md and 0026-arithmetic-by-the-gpu.md).
template <class Proved>
bool is_proved_equal(const compute_call& call, const Proved& proved) {
  if (call.report == flag_report::wanted) return false;
  const cast_rule& rule = call.rule;
  if (rule.rounding != rounding::nearest_even) return false;
  if (rule.overflow != overflow::ieee && rule.overflow != overflow::saturate) return false;
  // preserve_sign affects a NaN that comes from an overflow; only e4m3 has such NaNs.
  if (rule.nan != nan_policy::canonical && call.out.format == format_id::e4m3) return false;
  for (int i = 0; i < operand_count(call.op); ++i) {
    if (call.operands[i].format != call.out.format) return false;
  }
  return proved(call.op, call.out.format);
}

/// A segment of one row: consecutive elements of a call.
struct arithmetic_segment {
  const std::byte* in[max_operands];
  std::byte* out;
  flags* each;                         ///< null if flags of each element are not wanted
  std::int64_t in_step[max_operands];  ///< bytes from one element to the next
  std::int64_t out_step;               ///< bytes from one element to the next
  std::int64_t each_step;              ///< bytes from one element to the next
  std::int64_t count;
  std::uint64_t index;  ///< index of the first element, for its random bits (contract §3)
};

/// Calls f(arithmetic_segment), in order, for the segment of each row that the range touches.
template <class Function>
void for_each_arithmetic_segment(const compute_call& call, element_range range, const Function& f) {
  const matrix_view& out = call.out;
  const int operands = operand_count(call.op);
  const auto visit = [&](std::int64_t row, std::int64_t col, std::int64_t count) {
    arithmetic_segment r{};
    r.count = count;
    for (int i = 0; i < operands; ++i) {
      const const_matrix_view& v = call.operands[i];
      r.in[i] = element_at(v, row, col);
      r.in_step[i] = v.col_stride * storage_bytes(v.format);
    }
    r.out = element_at(out, row, col);
    r.out_step = out.col_stride * storage_bytes(out.format);
    if (call.each.data != nullptr) {
      r.each = call.each.data + (row * call.each.row_stride + col * call.each.col_stride);
      r.each_step = call.each.col_stride;
    }
    r.index = random_index(call.random, call.pitch, row, col);
    f(r);
  };
  for_each_row_part(out.cols, range, visit);
}

}  // namespace samebits::backends
