// Reductions on the host: any thread reduces whole chunks of 4096 elements; the tree combines them.
#include "backends/dispatch/calls/reductions.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <mutex>
#include <vector>

#include "backends/dispatch/element.hpp"
#include "backends/dispatch/visit.hpp"
#include "backends/reference/cells.hpp"
#include "backends/reference/reference.hpp"
#include "backends/self_test/build_flags.hpp"
#include "backends/self_test/self_test.hpp"
#include "backends/threads/parts.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/bits/classify.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/element_counts.hpp"
#include "numerics/sums/sum_tree.hpp"

namespace samebits::backends {
namespace {

using numerics::chunk_elements;

std::int64_t size_of(const const_matrix_view& v) { return v.rows * v.cols; }

/// Loads the codes of elements [first, first + count) in row-major order.
template <format_id F>
void load_codes(const const_matrix_view& v, std::int64_t first, std::int64_t count,
                std::uint32_t* codes) {
  using memory = cell<spec_of(F).storage_bits>;
  const std::int64_t step = v.col_stride * (spec_of(F).storage_bits / 8);
  for_each_row_part(v.cols, {first, first + count},
                    [&](std::int64_t row, std::int64_t col, std::int64_t in_row) {
                      const std::byte* const p = element_at(v, row, col);
                      for (std::int64_t i = 0; i < in_row; ++i)
                        *codes++ = memory::load(p + i * step);
                    });
}

/// Calls f(chunk index, first element, number of elements) for every chunk, on several threads.
template <class Function>
void for_each_chunk(std::int64_t size, int threads, const Function& f) {
  const std::int64_t chunks = (size + chunk_elements - 1) / chunk_elements;
  for_each_item(chunks, chunk_elements, threads, [&](std::int64_t i) {
    const std::int64_t first = i * chunk_elements;
    f(i, first, std::min(chunk_elements, size - first));
  });
}

/// Calls f(format, codes, number of elements) for every chunk, on several threads.
template <class Function>
void for_each_codes(const const_matrix_view& in, int threads, const Function& f) {
  with_list_format(in.format, [&]<format_id F>() {
    for_each_chunk(size_of(in), threads, [&](std::int64_t, std::int64_t first, std::int64_t n) {
      std::uint32_t codes[chunk_elements];
      load_codes<F>(in, first, n, codes);
      f(fixed_format<F>{}, codes, n);
    });
  });
}

/// Loads the values of elements, which binary32 holds exactly. Not inlined: the loops of all formats
/// would be compiled once more for each caller.
template <class Number>
[[gnu::noinline]] void load_values(const const_matrix_view& v, std::int64_t first,
                                   std::int64_t count, Number* values) {
  with_list_format(v.format, [&]<format_id F>() {
    std::uint32_t codes[chunk_elements];
    load_codes<F>(v, first, count, codes);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto bits = numerics::decode<std::uint32_t>(spec_of(F), codes[i]);
      values[i] = static_cast<Number>(std::bit_cast<float>(bits));
    }
  });
}

/// The root of the tree of contract §6 over the inputs in `partial_sum`, which it overwrites. No
/// inputs give +0.
template <class Number>
Number tree_of(Number* partial_sum, std::int64_t count) {
  if (count == 0) return 0;
  while (count > 1) {
    const std::int64_t pairs = count / 2;
    for (std::int64_t j = 0; j < pairs; ++j)
      partial_sum[j] = partial_sum[2 * j] + partial_sum[2 * j + 1];
    if (count % 2 != 0) partial_sum[pairs] = partial_sum[count - 1];
    count = pairs + count % 2;
  }
  return partial_sum[0];
}

/// The tree over all elements; inputs(first, count, out) writes the inputs of one chunk. A partial
/// last chunk has no neighbour and moves up unchanged. The chunks' roots are therefore the inputs
/// of the upper part of the tree.
template <class Number, class Inputs>
Number sum_by_tree(std::int64_t size, int threads, const Inputs& inputs) {
  std::vector<Number> roots(static_cast<std::size_t>((size + chunk_elements - 1) / chunk_elements));
  for_each_chunk(size, threads, [&](std::int64_t i, std::int64_t first, std::int64_t count) {
    Number chunk[chunk_elements];
    inputs(first, count, chunk);
    roots[static_cast<std::size_t>(i)] = tree_of(chunk, count);
  });
  return tree_of(roots.data(), static_cast<std::int64_t>(roots.size()));
}

template <class Number, class Inputs>
Number sum_in_sequence(std::int64_t size, const Inputs& inputs) {
  Number total = 0;
  for (std::int64_t first = 0; first < size; first += chunk_elements) {
    Number chunk[chunk_elements];
    const std::int64_t count = std::min(chunk_elements, size - first);
    inputs(first, count, chunk);
    std::int64_t i = 0;
    if (first == 0) total = chunk[i++];
    for (; i < count; ++i) total = total + chunk[i];
  }
  return total;
}

/// The canonical NaN of contract §2 in the format of the computation; other values stay unchanged.
double canonical(double x) {
  if (x == x) return x;
  return std::bit_cast<double>(numerics::canonical_nan(spec_of(format_id::fp64)));
}
float canonical(float x) {
  if (x == x) return x;
  return std::bit_cast<float>(
      static_cast<std::uint32_t>(numerics::canonical_nan(spec_of(format_id::fp32))));
}

enum class input : std::uint8_t { element, square };

double sum_of(const const_matrix_view& in, int threads, input kind) {
  return canonical(sum_by_tree<double>(size_of(in), threads,
                                       [&](std::int64_t first, std::int64_t count, double* out) {
                                         load_values(in, first, count, out);
                                         if (kind == input::element) return;
                                         for (std::int64_t i = 0; i < count; ++i)
                                           out[i] = out[i] * out[i];
                                       }));
}

template <class Number>
Number dot_in(const const_matrix_view& x, const const_matrix_view& y, sum_order order,
              int threads) {
  const auto products = [&](std::int64_t first, std::int64_t count, Number* out) {
    Number other[chunk_elements] = {};
    load_values(x, first, count, out);
    load_values(y, first, count, other);
    for (std::int64_t i = 0; i < count; ++i) out[i] = out[i] * other[i];
  };
  const std::int64_t size = size_of(x);
  return canonical(order == sum_order::tree ? sum_by_tree<Number>(size, threads, products)
                                            : sum_in_sequence<Number>(size, products));
}

float amax_of(const const_matrix_view& in, int threads) {
  // Magnitude codes of one format have the order of their values, with NaN above all.
  std::mutex combining;
  std::uint32_t largest = 0;
  for_each_codes(
      in, threads, [&]<format_id F>(fixed_format<F>, const auto* codes, std::int64_t count) {
        constexpr auto keep = static_cast<std::uint32_t>(numerics::magnitude_mask(spec_of(F)));
        std::uint32_t maximum = 0;
        for (std::int64_t i = 0; i < count; ++i) maximum = std::max(maximum, codes[i] & keep);
        const std::scoped_lock lock(combining);
        largest = std::max(largest, maximum);
      });
  return std::bit_cast<float>(
      numerics::binary32::amax_bits(numerics::decode<std::uint32_t>(spec_of(in.format), largest)));
}

element_counts counts_of(const const_matrix_view& in, int threads) {
  std::mutex combining;
  element_counts all;
  for_each_codes(in, threads,
                 [&]<format_id F>(fixed_format<F>, const auto* codes, std::int64_t count) {
                   numerics::code_counts part;
                   for (std::int64_t i = 0; i < count; ++i) part.add(spec_of(F), codes[i]);
                   const std::scoped_lock lock(combining);
                   all.elements += static_cast<std::uint64_t>(count);
                   all.nan += part.nan;
                   all.inf += part.inf;
                   all.zeros += part.zeros;
                   all.subnormals += part.subnormals;
                 });
  return all;
}

double dot_of(const reduction_call& call, int threads) {
  if (call.options.precision == accumulation::fp64) {
    return dot_in<double>(call.x, call.y, call.options.order, threads);
  }
  return static_cast<double>(dot_in<float>(call.x, call.y, call.options.order, threads));
}

}  // namespace

void host_reduce(const reduction_call& call, const executor& where) {
  reduction_result& result = *call.result;
  // The loops are compiled with the reference backend's flags.
  if (has_steps(call.what)) require_tested(reference);
  switch (call.what) {
    case reduction::amax: result.amax = amax_of(call.x, where.threads); break;
    case reduction::counts: result.counts = counts_of(call.x, where.threads); break;
    case reduction::sum: result.sum = sum_of(call.x, where.threads, input::element); break;
    case reduction::sum_of_squares:
      result.sum = sum_of(call.x, where.threads, input::square);
      break;
    case reduction::dot: result.sum = dot_of(call, where.threads); break;
  }
}

}  // namespace samebits::backends
