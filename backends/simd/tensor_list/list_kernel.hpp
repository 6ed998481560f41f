// SIMD tensor list operations: the sum tree of a chunk and element-wise arithmetic in SIMD lanes,
// compiled once per instruction set.
//
// One translation unit per instruction set includes this file, under the rules of
// convert_kernel.hpp: every template has Isa among its arguments, and no standard library function
// is called.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/dispatch/visit.hpp"
#include "backends/self_test/build_flags.hpp"
#include "backends/simd/lanes/access.hpp"
#include "backends/simd/lanes/amax.hpp"
#include "backends/simd/lanes/hardware.hpp"
#include "backends/simd/lanes/tree_block.hpp"
#include "backends/simd/simd.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/bits/layout.hpp"
#include "numerics/bits/word.hpp"
#include "numerics/sums/sum_tree.hpp"
#include "numerics/tensor_list/list_ops.hpp"

namespace samebits::simd {

/// The partial sums of the squares of a tree_block of elements. Updates `maximum` by its magnitude
/// codes.
template <class Isa, format_id F>
SAMEBITS_INLINE typename Isa::partial_sums block_sums(const std::byte* p,
                                                      typename Isa::lanes_isa::word& maximum) {
  using partial_sums = typename Isa::partial_sums;
  using lanes = typename Isa::lanes_isa;
  constexpr std::int64_t bytes = spec_of(F).storage_bits / 8;
  constexpr std::uint32_t keep = bytes == 2 ? 0x7FFF7FFFu : 0x7FFFFFFFu;
  partial_sums x[Isa::count];
#pragma GCC unroll 8
  for (int i = 0; i < Isa::count; ++i) {
    x[i] = Isa::template load_elements<F>(p + i * Isa::count * bytes);
  }
#pragma GCC unroll 8
  for (std::int64_t at = 0; at < tree_block<Isa> * bytes; at += lanes::register_bytes) {
    const typename lanes::word codes = load<lanes>(fixed_width<32>{}, p + at) & keep;
    maximum = bytes == 2 ? lanes::max_halves(maximum, codes) : max_word(maximum, codes);
  }
  return Isa::fold(
      x, [](partial_sums even, partial_sums odd)
             __attribute__((always_inline)) { return Isa::sum_of_squares(even, odd); });
}

/// Number of elements whose magnitude code is at least `minimum`, which must not be 0.
template <class Isa, format_id F>
std::uint32_t count_magnitudes(const std::byte* codes, std::int64_t count, std::uint32_t minimum) {
  using word = typename Isa::word;
  constexpr int width = spec_of(F).storage_bits;
  word found = 0u;
  for (std::int64_t i = 0; i < count; i += word::count) {
    const word magnitude = load_codes<Isa, width>(codes, i, count) & word(magnitude_bits_of<width>);
    found = found + select(magnitude >= word(minimum), word(1u), word(0u));
  }
  return sum_of_lanes<Isa>(found);
}

/// The partial sums of a full chunk, which spans several pages. Takes one block from each page in
/// turn and prefetches the next chunk, which is probably needed next (see `streaming` in
/// access.hpp).
template <class Isa, format_id F>
SAMEBITS_INLINE void whole_chunk_sums(typename Isa::partial_sums* v, const std::byte* codes,
                                      typename Isa::lanes_isa::word& maximum) {
  constexpr std::int64_t bytes = tree_block<Isa> * (spec_of(F).storage_bits / 8);
  constexpr std::int64_t blocks = streaming::page_bytes / bytes;  // blocks per page
  constexpr std::int64_t pages = numerics::chunk_elements / tree_block<Isa> / blocks;
  for (std::int64_t b = 0; b < blocks; ++b) {
    for (std::int64_t page = 0; page < pages; ++page) {
      const std::int64_t n = page * blocks + b;
      const std::byte* const p = codes + n * bytes;
#pragma GCC unroll 4
      for (std::int64_t line = 0; line < bytes; line += 64) {
        __builtin_prefetch(p + 4 * streaming::page_bytes + line);
      }
      v[n] = block_sums<Isa, F>(p, maximum);
    }
  }
}

/// list_lanes_kernel::inspect for one format.
template <class Isa, format_id F>
backends::list_lanes_kernel::sums inspect_codes(const std::byte* codes, std::int64_t count) {
  using partial_sums = typename Isa::partial_sums;
  using word = typename Isa::lanes_isa::word;
  constexpr std::int64_t block = tree_block<Isa>;
  constexpr std::int64_t bytes = spec_of(F).storage_bits / 8;
  partial_sums v[std::size_t{numerics::chunk_elements / block}];
  word maximum = 0u;
  std::int64_t n = 0;
  if (count == numerics::chunk_elements) {
    whole_chunk_sums<Isa, F>(v, codes, maximum);
    n = numerics::chunk_elements / block;
  }
  for (; (n + 1) * block <= count; ++n)
    v[n] = block_sums<Isa, F>(codes + n * block * bytes, maximum);
  // Padding zeros do not change the sum.
  if (const std::int64_t left = count - n * block; left != 0) {
    std::byte copy[std::size_t{block * bytes}] = {};
    __builtin_memcpy(copy, codes + n * block * bytes, static_cast<std::size_t>(left * bytes));
    v[n++] = block_sums<Isa, F>(copy, maximum);
  }
  const double squares = root_of_chunk<Isa>(v, n);
  if (bytes == 2) maximum = max_word(maximum & word(0xFFFFu), maximum >> 16u);
  backends::list_lanes_kernel::sums found = {Isa::lanes_isa::largest(maximum), 0, 0, 0};
  __builtin_memcpy(&found.squares, &squares, sizeof found.squares);
  constexpr auto inf = static_cast<std::uint32_t>(numerics::inf_code(spec_of(F)));
  if (found.maximum >= inf) {  // which is rare
    found.nan = count_magnitudes<typename Isa::lanes_isa, F>(codes, count, inf + 1);
    found.inf = count_magnitudes<typename Isa::lanes_isa, F>(codes, count, inf) - found.nan;
  }
  return found;
}

/// list_lanes_kernel::inspect.
template <class Isa>
backends::list_lanes_kernel::sums inspect(format_id format, const std::byte* codes,
                                          std::int64_t count) {
  return backends::with_format<format_id::fp16, format_id::bf16, format_id::fp32>(
      format, [&]<format_id F>() { return inspect_codes<Isa, F>(codes, count); });
}

/// Replaces binary32 elements in place by f(index of the first, lanes) -> lanes. In the last call,
/// lanes after the last element hold 0 and are not stored.
template <class Isa, class Function>
SAMEBITS_INLINE void for_each_word(std::byte* x, std::int64_t count, const Function& f) {
  using word = typename Isa::word;
  constexpr fixed_width<32> width;
  std::int64_t i = 0;
  for (; i + word::count <= count; i += word::count) {
    std::byte* const p = x + i * 4;
    store<Isa>(width, p, f(i, load<Isa>(width, p)));
  }
  if (i == count) return;
  std::byte copy[sizeof(word)];
  store<Isa>(width, copy, f(i, load_tail<Isa, 32>(x + i * 4, count - i, 0)));
  __builtin_memcpy(x + i * 4, copy, static_cast<std::size_t>(count - i) * 4);
}

/// As for_each_word() for a full chunk: takes one line from each of its pages in turn and prefetches
/// the next chunk. Scaling 10^7 elements takes half the time that it takes in element order (AMD EPYC).
template <class Isa, class Function>
SAMEBITS_INLINE void for_each_word_of_chunk(std::byte* x, const Function& f) {
  constexpr fixed_width<32> width;
  constexpr std::int64_t bytes = numerics::chunk_elements * 4, line_bytes = 64;
  for (std::int64_t line = 0; line < streaming::page_bytes; line += line_bytes) {
    for (std::int64_t page = 0; page < bytes; page += streaming::page_bytes) {
      std::byte* const p = x + page + line;
      __builtin_prefetch(p + bytes, 1);
#pragma GCC unroll 2
      for (std::int64_t at = 0; at < line_bytes; at += Isa::register_bytes) {
        store<Isa>(width, p + at, f(load<Isa>(width, p + at)));
      }
    }
  }
}

/// list_lanes_kernel::scale.
template <class Isa>
backends::list_lanes_kernel::scaled scale(std::byte* x, std::int64_t count, std::uint32_t factor) {
  using word = typename Isa::word;
  const word keep = ~numerics::binary32::sign_bit;
  const word inf = numerics::binary32::inf;
  word before = 0u;
  word after = 0u;
  word nonfinite = 0u;
  const auto scaled = [&](word v) __attribute__((always_inline)) {
    const word magnitude = v & keep;
    before = max_word(before, magnitude);
    nonfinite = nonfinite + select(magnitude >= inf, word(1u), word(0u));
    const word y = numerics::scaled_value<canonical_hardware<Isa>>(v, word(factor));
    after = max_word(after, y & keep);
    return y;
  };
  if (count == numerics::chunk_elements) {
    for_each_word_of_chunk<Isa>(x, scaled);
  } else {
    for_each_word<Isa>(
        x, count, [&](std::int64_t, word v) __attribute__((always_inline)) { return scaled(v); });
  }
  return {Isa::largest(before), Isa::largest(after), sum_of_lanes<Isa>(nonfinite)};
}

/// list_lanes_kernel::accumulate.
template <class Isa>
void accumulate(std::byte* acc, const std::byte* x, std::int64_t count, std::uint32_t scale) {
  using word = typename Isa::word;
  for_each_word<Isa>(
      acc, count, [&](std::int64_t i, word sum) __attribute__((always_inline)) {
        return numerics::accumulated_value<canonical_hardware<Isa>>(
            sum, load_codes<Isa, 32>(x, i, count), word(scale));
      });
}

/// list_lanes_kernel::combine.
template <class Isa>
void combine(std::uint32_t a, std::byte* x, std::uint32_t b, const std::byte* y,
             std::int64_t count) {
  using word = typename Isa::word;
  for_each_word<Isa>(
      x, count, [&](std::int64_t i, word v) __attribute__((always_inline)) {
        return numerics::combined_value<canonical_hardware<Isa>>(word(a), v, word(b),
                                                                 load_codes<Isa, 32>(y, i, count));
      });
}

}  // namespace samebits::simd
