// reduce_axes(): checks arguments and chooses a backend.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "backends/api/functions/sum_checks.hpp"
#include "numerics/hardware/torch_operators/axis_reduction.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "samebits/error.hpp"

namespace samebits {
namespace backends {
namespace {

void check_axis_options(const axis_reduction_options& options, format_id format) {
  check_value("of", options.of, "axis_reduction");
  check_at_least("offset", options.offset, 0);
  check_at_least("multiprocessors", options.multiprocessors, 1);
  check_sum_rule(options.rule, std::string(name(options.of)) + " over axes", format);
}

/// Sizes of a checked tensor.
struct tensor_size {
  std::int64_t elements = 1;
  std::int64_t span = 0;  ///< elements from the first to behind the last one
};

tensor_size size_of(const const_tensor_view& in) {
  if (in.shape.size() > max_reduction_axes) {
    throw invalid_argument("in: at most " + std::to_string(max_reduction_axes) +
                           " axes are possible, got " + std::to_string(in.shape.size()));
  }
  if (in.strides.size() != in.shape.size()) {
    throw invalid_argument("in: one stride per axis is expected, got " +
                           std::to_string(in.strides.size()) + " for " +
                           std::to_string(in.shape.size()) + " axes");
  }
  bool empty = false;
  for (std::size_t i = 0; i < in.shape.size(); ++i) {
    if (in.shape[i] < 0 || in.strides[i] < 0) {
      throw invalid_argument("in: sizes and strides must be at least 0, got size " +
                             std::to_string(in.shape[i]) + " and stride " +
                             std::to_string(in.strides[i]) + " of axis " + std::to_string(i));
    }
    empty = empty || in.shape[i] == 0;
  }
  if (empty) return {0, 0};
  const std::int64_t bytes = spec_of(in.format).storage_bits / 8;
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  __int128 elements = 1, last = 0;
  for (std::size_t i = 0; i < in.shape.size(); ++i) {
    elements *= in.shape[i];
    last += static_cast<__int128>(in.shape[i] - 1) * in.strides[i];
    if (elements > most || last * bytes + 1 > most) {
      throw unsupported("in: a tensor that spans 2^31 bytes or more has no rule: PyTorch cuts it");
    }
  }
  return {static_cast<std::int64_t>(elements), static_cast<std::int64_t>(last) + 1};
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
    if (count == 0) throw invalid_argument("axes: the tensor has no axes");
    if (axis < 0 || axis >= count) {
      throw invalid_argument("axes: must be from 0 to " + std::to_string(count - 1) + ", got " +
                             std::to_string(axis));
    }
    const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(axis);
    if ((reduced & bit) != 0) {
      throw invalid_argument("axes: " + std::to_string(axis) + " is given twice");
    }
    reduced |= bit;
  }
  return axes.empty() ? (std::uint64_t{1} << static_cast<unsigned>(count)) - 1 : reduced;
}

void check_results(const const_tensor_view& in, std::uint64_t reduced, const tensor_size& n,
                   const matrix_view& out) {
  check_view(out, "out");
  check_distinct(out, "out");
  const std::int64_t results = results_of(in, reduced);
  if (results < 0) throw invalid_argument("in: the results are more than 2^63 - 1");
  if (static_cast<__int128>(out.rows) * out.cols != results) {
    throw invalid_argument("out: must have " + std::to_string(results) + " elements, got shape " +
                           shape_text(out.rows, out.cols));
  }
  if (out.format != in.format) {
    throw invalid_argument("out: format must be that of in, " + std::string(name(in.format)) +
                           ", got " + std::string(name(out.format)));
  }
  if (out.space != in.space) {
    throw invalid_argument("in: must lie in the same memory as out, host or device");
  }
  if (n.elements == 0) return;
  if (in.data == nullptr) throw invalid_argument("in: data is null");
  const const_matrix_view memory{in.data, in.format, 1, n.span, n.span, 1, in.space};
  check_apart(memory, "in", out, "out");
}

/// Writes the result of no elements.
void fill(const matrix_view& out, axis_reduction of) {
  namespace torch = numerics::torch_2_11;
  torch::axis_plan none;
  none.inputs = 0;
  const std::uint32_t code =
      torch::code_of(out.format, torch::axis_result(none, of, std::uint32_t{0}));
  const int bytes = spec_of(out.format).storage_bits / 8;
  for (std::int64_t row = 0; row < out.rows; ++row) {
    for (std::int64_t col = 0; col < out.cols; ++col) {
      auto* const at =
          static_cast<std::byte*>(out.data) + (row * out.row_stride + col * out.col_stride) * bytes;
      std::memcpy(at, &code, static_cast<std::size_t>(bytes));
    }
  }
}

}  // namespace
}  // namespace backends

void reduce_axes(const const_tensor_view& in, std::span<const int> axes, const matrix_view& out,
                 const axis_reduction_options& options, const executor& where) {
  using namespace backends;
  check_axis_options(options, in.format);
  const tensor_size n = size_of(in);
  const int count = static_cast<int>(in.shape.size());
  const std::uint64_t reduced = checked_axes(axes, count);
  check_results(in, reduced, n, out);
  const sum_kernels& sums = sums_of(where, out.space, "reductions over axes");
  if (is_empty(out)) return;
  if (n.elements == 0) return fill(out, options.of);
  const std::int64_t offset = options.offset % 8;
  const auto plan =
      numerics::torch_2_11::plan_of({in.format, options.of, count, in.shape.data(),
                                     in.strides.data(), reduced, offset, options.multiprocessors});
  reduce_axes_on_threads({plan, options.of, offset, static_cast<const std::byte*>(in.data), out},
                         where, sums);
}

}  // namespace samebits
