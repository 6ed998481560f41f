// Reductions of matrices: whole chunks of 4096 elements on any thread, joined by the tree.
#include "samebits/reductions.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "backends/build_flags.hpp"
#include "backends/pieces.hpp"
#include "backends/reference/cells.hpp"
#include "backends/reference/reference.hpp"
#include "backends/self_test.hpp"
#include "backends/view_checks.hpp"
#include "backends/visit.hpp"
#include "numerics/classify.hpp"
#include "numerics/decode.hpp"
#include "samebits/arithmetic.hpp"
#include "samebits/error.hpp"

namespace samebits {
namespace backends {
namespace {

/// Elements of a node of the tree that threads compute alone (contract §6).
constexpr std::int64_t chunk_elements = 4096;

void check_input(const const_matrix_view& v, const char* which) {
  check_view(v, which);
  if (!has_arithmetic(v.format)) {
    throw invalid_argument(std::string(which) +
                           ": format must be one of fp32, fp16, bf16, e4m3, e5m2, got " +
                           std::string(name(v.format)));
  }
}

/// Every host backend reduces by these loops.
void check_executor(const executor& where, memory_space space) {
  check_threads(where);
  const auto is_host = [](const backend& b) { return b.space == memory_space::host; };
  const backend& chosen = resolve(where, space, is_host);
  check_memory(chosen, space);
  if (!is_host(chosen)) {
    throw unsupported("backend '" + std::string(chosen.name) + "' has no reductions");
  }
}

std::int64_t size_of(const const_matrix_view& v) { return v.rows * v.cols; }

/// The codes of elements [first, first + count) in row-major order.
template <format_id F>
void load_codes(const const_matrix_view& v, std::int64_t first, std::int64_t count,
                std::uint32_t* codes) {
  using memory = cell<spec_of(F).storage_bits>;
  constexpr std::int64_t bytes = spec_of(F).storage_bits / 8;
  std::int64_t row = first / v.cols;
  std::int64_t col = first % v.cols;
  while (count > 0) {
    const std::int64_t in_row = std::min(count, v.cols - col);
    const std::byte* p =
        static_cast<const std::byte*>(v.data) + (row * v.row_stride + col * v.col_stride) * bytes;
    const std::int64_t step = v.col_stride * bytes;
    for (std::int64_t i = 0; i < in_row; ++i) codes[i] = memory::load(p + i * step);
    codes += in_row;
    count -= in_row;
    ++row;
    col = 0;
  }
}

/// Calls f(fixed_format) for the format of a checked view.
template <class Function>
void with_format(format_id format, const Function& f) {
  using enum format_id;
  detail::visit_among<fp32, fp16, bf16, e4m3, e5m2>(format, f, [] {});
}

/// Calls f(index of the chunk, first element, elements) for every chunk, on several threads.
template <class Function>
void for_each_chunk(std::int64_t size, int threads, const Function& f) {
  const std::int64_t chunks = (size + chunk_elements - 1) / chunk_elements;
  for_each_piece(
      chunks, threads,
      [&](element_range range) {
        for (std::int64_t i = range.begin; i < range.end; ++i) {
          const std::int64_t first = i * chunk_elements;
          f(i, first, std::min(chunk_elements, size - first));
        }
      },
      elements_worth_a_thread / chunk_elements);
}

/// The same with the codes of each chunk: f(format, codes, elements).
template <class Function>
void for_each_codes(const const_matrix_view& in, int threads, const Function& f) {
  with_format(in.format, [&]<format_id F>(fixed_format<F> format) {
    for_each_chunk(size_of(in), threads, [&](std::int64_t, std::int64_t first, std::int64_t n) {
      std::uint32_t codes[chunk_elements];
      load_codes<F>(in, first, n, codes);
      f(format, codes, n);
    });
  });
}

/// The values of elements, which binary32 holds exactly.
template <class Number>
void load_values(const const_matrix_view& v, std::int64_t first, std::int64_t count,
                 Number* values) {
  with_format(v.format, [&]<format_id F>(fixed_format<F>) {
    std::uint32_t codes[chunk_elements];
    load_codes<F>(v, first, count, codes);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto bits = numerics::decode<std::uint32_t>(spec_of(F), codes[i]);
      values[i] = static_cast<Number>(std::bit_cast<float>(bits));
    }
  });
}

/// The root of the tree of contract §6 over leaves, which it overwrites; +0 of none.
template <class Number>
Number tree_of(Number* node, std::int64_t count) {
  if (count == 0) return 0;
  while (count > 1) {
    const std::int64_t pairs = count / 2;
    for (std::int64_t j = 0; j < pairs; ++j) node[j] = node[2 * j] + node[2 * j + 1];
    if (count % 2 != 0) node[pairs] = node[count - 1];
    count = pairs + count % 2;
  }
  return node[0];
}

/// The tree over all elements: leaves(first, count, out) are those of one chunk. A last chunk that
/// is not whole is a lone last node and passes up unchanged, so the chunks' roots are leaves in
/// turn.
template <class Number, class Leaves>
Number sum_by_tree(std::int64_t size, int threads, const Leaves& leaves) {
  std::vector<Number> roots(static_cast<std::size_t>((size + chunk_elements - 1) / chunk_elements));
  for_each_chunk(size, threads, [&](std::int64_t i, std::int64_t first, std::int64_t count) {
    Number chunk[chunk_elements];
    leaves(first, count, chunk);
    roots[static_cast<std::size_t>(i)] = tree_of(chunk, count);
  });
  return tree_of(roots.data(), static_cast<std::int64_t>(roots.size()));
}

template <class Number, class Leaves>
Number sum_in_sequence(std::int64_t size, const Leaves& leaves) {
  Number total = 0;
  for (std::int64_t first = 0; first < size; first += chunk_elements) {
    Number chunk[chunk_elements];
    const std::int64_t count = std::min(chunk_elements, size - first);
    leaves(first, count, chunk);
    std::int64_t i = 0;
    if (first == 0) total = chunk[i++];
    for (; i < count; ++i) total = total + chunk[i];
  }
  return total;
}

/// NaN as contract §2 has it, of the format it was computed in.
double canonical(double x) {
  if (x == x) return x;
  return std::bit_cast<double>(numerics::canonical_nan(spec_of(format_id::fp64)));
}
float canonical(float x) {
  if (x == x) return x;
  return std::bit_cast<float>(
      static_cast<std::uint32_t>(numerics::canonical_nan(spec_of(format_id::fp32))));
}

enum class leaf : std::uint8_t { element, square };

double checked_sum(const const_matrix_view& in, const executor& where, leaf kind) {
  check_input(in, "in");
  check_executor(where, in.space);
  require_tested(reference);
  return canonical(sum_by_tree<double>(size_of(in), where.threads,
                                       [&](std::int64_t first, std::int64_t count, double* out) {
                                         load_values(in, first, count, out);
                                         if (kind == leaf::element) return;
                                         for (std::int64_t i = 0; i < count; ++i)
                                           out[i] = out[i] * out[i];
                                       }));
}

template <class Number>
Number dot_in(const const_matrix_view& x, const const_matrix_view& y, sum_order order,
              int threads) {
  const auto products = [&](std::int64_t first, std::int64_t count, Number* out) {
    Number other[chunk_elements];
    load_values(x, first, count, out);
    load_values(y, first, count, other);
    for (std::int64_t i = 0; i < count; ++i) out[i] = out[i] * other[i];
  };
  const std::int64_t size = size_of(x);
  return canonical(order == sum_order::tree ? sum_by_tree<Number>(size, threads, products)
                                            : sum_in_sequence<Number>(size, products));
}

}  // namespace
}  // namespace backends

float amax(const const_matrix_view& in, const executor& where) {
  namespace b = backends;
  b::check_input(in, "in");
  b::check_executor(where, in.space);
  // Magnitude codes of one format are ordered as their values are, NaN above all.
  std::mutex joining;
  std::uint32_t largest = 0;
  b::for_each_codes(in, where.threads,
                    [&]<format_id F>(b::fixed_format<F>, const auto* codes, std::int64_t count) {
                      constexpr auto keep =
                          static_cast<std::uint32_t>(numerics::magnitude_mask(spec_of(F)));
                      std::uint32_t most = 0;
                      for (std::int64_t i = 0; i < count; ++i)
                        most = std::max(most, codes[i] & keep);
                      const std::scoped_lock lock(joining);
                      largest = std::max(largest, most);
                    });
  const auto bits = numerics::decode<std::uint32_t>(spec_of(in.format), largest);
  constexpr std::uint32_t inf = numerics::binary<std::uint32_t>::inf;
  return std::bit_cast<float>(bits > inf ? numerics::binary<std::uint32_t>::nan : bits);
}

element_counts counts(const const_matrix_view& in, const executor& where) {
  namespace b = backends;
  b::check_input(in, "in");
  b::check_executor(where, in.space);
  std::mutex joining;
  element_counts all;
  b::for_each_codes(in, where.threads,
                    [&]<format_id F>(b::fixed_format<F>, const auto* codes, std::int64_t count) {
                      constexpr format_spec format = spec_of(F);
                      constexpr std::uint64_t least_normal = std::uint64_t{1}
                                                             << format.mantissa_bits;
                      element_counts part;
                      part.elements = static_cast<std::uint64_t>(count);
                      for (std::int64_t i = 0; i < count; ++i) {
                        const std::uint64_t magnitude = codes[i] & numerics::magnitude_mask(format);
                        const bool infinite =
                            numerics::has_inf(format) && magnitude == numerics::inf_code(format);
                        part.nan += magnitude > numerics::max_finite(format) && !infinite ? 1u : 0u;
                        part.inf += infinite ? 1u : 0u;
                        part.zero += magnitude == 0 ? 1u : 0u;
                        part.subnormal += magnitude != 0 && magnitude < least_normal ? 1u : 0u;
                      }
                      const std::scoped_lock lock(joining);
                      all.elements += part.elements;
                      all.nan += part.nan;
                      all.inf += part.inf;
                      all.zero += part.zero;
                      all.subnormal += part.subnormal;
                    });
  return all;
}

double sum(const const_matrix_view& in, const executor& where) {
  return backends::checked_sum(in, where, backends::leaf::element);
}

double sum_of_squares(const const_matrix_view& in, const executor& where) {
  return backends::checked_sum(in, where, backends::leaf::square);
}

double dot(const const_matrix_view& x, const const_matrix_view& y, const dot_options& options,
           const executor& where) {
  namespace b = backends;
  b::check_input(x, "x");
  b::check_input(y, "y");
  if (x.rows != y.rows || x.cols != y.cols) {
    throw invalid_argument("y: shape must be that of x, " + b::shape_text(x.rows, x.cols) +
                           ", got " + b::shape_text(y.rows, y.cols));
  }
  if (x.space != y.space) {
    throw invalid_argument("y: must lie in the same memory as x, host or device");
  }
  if (options.precision != accumulation::fp32 && options.precision != accumulation::fp64) {
    throw invalid_argument("options.precision is not one of accumulation's");
  }
  if (options.order != sum_order::tree && options.order != sum_order::sequential) {
    throw invalid_argument("options.order is not one of sum_order's");
  }
  b::check_executor(where, x.space);
  b::require_tested(b::reference);
  if (options.precision == accumulation::fp64) {
    return b::dot_in<double>(x, y, options.order, where.threads);
  }
  return static_cast<double>(b::dot_in<float>(x, y, options.order, where.threads));
}

}  // namespace samebits
