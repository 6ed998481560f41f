// The kernel of reductions over axes on SIMD lanes (`Isa`: steps_avx2.hpp, steps_avx512.hpp).
// Included by one file per instruction set, which defines nothing else. convert_kernel.hpp says what
// code may be used here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits::simd {

/// One register of sums: sums[i] += value of codes[i], or by fma its square.
template <class Isa, int Bits>
SAMEBITS_INLINE void add_register(std::uint32_t* sums, const std::byte* codes, format_id format,
                                  bool squares) {
  using lanes = typename Isa::word;
  const auto x = numerics::torch_2_11::value_of<lanes>(format, Isa::template load<Bits>(codes));
  auto* const at = reinterpret_cast<std::byte*>(sums);
  const lanes sum = Isa::template load<32>(at);
  Isa::template store<32>(at, squares ? fma(x, x, sum) : add(sum, x));
}

/// backends::axis_kernel for codes of a width. The last, incomplete register is computed in a copy.
template <class Isa, int Bits>
SAMEBITS_INLINE void add_codes_of(std::uint32_t* sums, const std::byte* codes, std::int64_t n,
                                  format_id format, bool squares) {
  constexpr auto count = static_cast<std::size_t>(Isa::word::count);
  constexpr std::size_t bytes = Bits / 8;
  const auto size = static_cast<std::size_t>(n);
  std::size_t i = 0;
  for (; i + count <= size; i += count) {
    add_register<Isa, Bits>(sums + i, codes + i * bytes, format, squares);
  }
  if (i == size) return;
  std::uint32_t last_sums[count] = {};
  std::byte last_codes[count * bytes] = {};
  for (std::size_t j = i; j < size; ++j) last_sums[j - i] = sums[j];
  for (std::size_t j = i * bytes; j < size * bytes; ++j) last_codes[j - i * bytes] = codes[j];
  add_register<Isa, Bits>(last_sums, last_codes, format, squares);
  for (std::size_t j = i; j < size; ++j) sums[j] = last_sums[j - i];
}

template <class Isa>
SAMEBITS_INLINE void add_codes(std::uint32_t* sums, const std::byte* codes, std::int64_t n,
                               format_id format, bool squares) {
  if (format == format_id::fp32) return add_codes_of<Isa, 32>(sums, codes, n, format, squares);
  add_codes_of<Isa, 16>(sums, codes, n, format, squares);
}

}  // namespace samebits::simd
