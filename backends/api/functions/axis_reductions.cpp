// reduce_axes(): checks arguments and chooses a backend.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "backends/api/functions/sum_checks.hpp"
#include "backends/dispatch/refuse.hpp"
#include "backends/reference/functions/function_range.hpp"
#include "numerics/hardware/torch_operators/axis_reduction.hpp"

namespace samebits {
namespace backends {
namespace {

void check_axis_options(const axis_reduction_options& options, format_id format) {
  check_value("of", options.of, "axis_reduction");
  check_at_least("offset", options.offset, 0);
  check_at_least("multiprocessors", options.multiprocessors, 1);
  check_torch_rule(options.rule, std::string(name(options.of)) + " over axes", format);
}

/// Checks a tensor. Returns the memory that it spans.
const_matrix_view checked(const const_tensor_view& in) {
  refuse_if(in.shape.size() > max_reduction_axes, "in: at most ", max_reduction_axes,
            " axes are possible, got ", in.shape.size());
  const const_matrix_view memory = memory_of(in, "in");
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  __int128 elements = 1;
  for (const std::int64_t n : in.shape) elements = std::min<__int128>(elements * n, most + 1);
  const std::int64_t last = memory.cols - 1;
  refuse_if<unsupported>(
      last >= 0 && (elements > most || last > (most - 1) / storage_bytes(in.format)),
      "in: a tensor that spans 2^31 bytes or more has no rule: PyTorch cuts it");
  return memory;
}

/// The number of results; -1 if it is more than any view holds, which an empty tensor allows.
std::int64_t results_of(const const_tensor_view& in, std::uint64_t reduced) {
  std::int64_t results = 1;
  bool empty = false, fits = true;
  for (std::size_t i = 0; i < in.shape.size(); ++i) {
    if (((reduced >> i) & 1u) != 0) continue;
    empty = empty || in.shape[i] == 0;
    fits = fits && !__builtin_mul_overflow(results, in.shape[i], &results);
  }
  return empty ? 0 : fits ? results : -1;
}

/// The set of axes to reduce, a bit for each.
std::uint64_t checked_axes(std::span<const int> axes, int count) {
  std::uint64_t reduced = 0;
  for (const int axis : axes) {
    refuse_if(count == 0, "axes: the tensor has no axes");
    refuse_if(axis < 0 || axis >= count, "axes: must be from 0 to ", count - 1, ", got ", axis);
    const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(axis);
    refuse_if((reduced & bit) != 0, "axes: ", axis, " is given twice");
    reduced |= bit;
  }
  return axes.empty() ? (std::uint64_t{1} << static_cast<unsigned>(count)) - 1 : reduced;
}

void check_results(const const_tensor_view& in, std::uint64_t reduced,
                   const const_matrix_view& memory, const matrix_view& out) {
  check_view(out, "out");
  check_distinct(out, "out");
  const std::int64_t results = results_of(in, reduced);
  refuse_if(results < 0, "in: the results are more than 2^63 - 1");
  refuse_if(static_cast<__int128>(out.rows) * out.cols != results, "out: must have ", results,
            " elements, got shape ", shape_of(out));
  check_format_of(out, "out", memory, "in");
  check_space_of(memory, "in", out, "out");
  if (is_empty(memory)) return;
  refuse_if(in.data == nullptr, "in: data is null");
  check_apart(memory, "in", out, "out");
}

/// The code of the result of no elements.
std::uint32_t result_of_none(axis_reduction of, format_id format) {
  torch::axis_plan none;
  none.inputs = 0;
  return torch::code_of(format, torch::axis_result(none, of, std::uint32_t{0}));
}

}  // namespace
}  // namespace backends

void reduce_axes(const const_tensor_view& in, std::span<const int> axes, const matrix_view& out,
                 const axis_reduction_options& options, const executor& where) {
  using namespace backends;
  check_axis_options(options, in.format);
  const const_matrix_view memory = checked(in);
  const int count = static_cast<int>(in.shape.size());
  const std::uint64_t reduced = checked_axes(axes, count);
  check_results(in, reduced, memory, out);
  const sum_kernels& sums = sums_of(where, out.space, "reductions over axes");
  if (is_empty(out)) return;
  if (is_empty(memory)) return fill_words(out, result_of_none(options.of, out.format));
  const std::int64_t offset = options.offset % 8;
  const auto plan =
      numerics::torch_2_11::plan_of({in.format, options.of, count, in.shape.data(),
                                     in.strides.data(), reduced, offset, options.multiprocessors});
  reduce_axes_on_threads({plan, options.of, offset, static_cast<const std::byte*>(in.data), out},
                         where, sums);
}

}  // namespace samebits
