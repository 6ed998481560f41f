// The kernels of sums on SIMD lanes (`Isa`: steps_avx2.hpp, steps_avx512.hpp): sum_kernels of
// backends/dispatch/calls/sums.hpp. Included by one file per instruction set, which defines nothing
// else. convert_kernel.hpp says what code may be used here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/hardware/torch_operators/row_layer_norm.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits::simd {

/// Neighbouring words or codes in memory, of `Bits` bits each. Of a last, incomplete register only
/// `count` of them are read and written.
template <class Isa, int Bits>
struct register_at {
  using lanes = typename Isa::word;
  std::byte* data;
  std::size_t count;

  [[nodiscard]] SAMEBITS_INLINE lanes load() const {
    if (count == lanes::count) return Isa::template load<Bits>(data);
    std::byte copy[lanes::count * Bits / 8] = {};
    for (std::size_t i = 0; i < count * Bits / 8; ++i) copy[i] = data[i];
    return Isa::template load<Bits>(copy);
  }
  SAMEBITS_INLINE void store(lanes x) const {
    if (count == lanes::count) return Isa::template store<Bits>(data, x);
    std::byte copy[lanes::count * Bits / 8];
    Isa::template store<Bits>(copy, x);
    for (std::size_t i = 0; i < count * Bits / 8; ++i) data[i] = copy[i];
  }
};

/// Calls step(i, count) for the registers of n neighbours: i is the first one's index.
template <class Isa, class Step>
SAMEBITS_INLINE void for_each_register(std::int64_t n, const Step& step) {
  constexpr auto lanes = static_cast<std::size_t>(Isa::word::count);
  const auto size = static_cast<std::size_t>(n);
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes) step(i, lanes);
  if (i < size) step(i, size - i);
}

template <class Isa>
SAMEBITS_INLINE register_at<Isa, 32> sums_at(std::uint32_t* sums, std::size_t i,
                                             std::size_t count) {
  return {reinterpret_cast<std::byte*>(sums + i), count};
}
template <class Isa, int Bits>
SAMEBITS_INLINE typename Isa::word values_at(const std::byte* codes, format_id format,
                                             std::size_t i, std::size_t count) {
  const register_at<Isa, Bits> at{const_cast<std::byte*>(codes) + i * Bits / 8, count};
  return numerics::torch_2_11::value_of(format, at.load());
}

template <class Isa, int Bits>
SAMEBITS_INLINE void add_codes_of(std::uint32_t* sums, const std::byte* codes, std::int64_t n,
                                  format_id format, bool squares) {
  for_each_register<Isa>(
      n, [&](std::size_t i, std::size_t count) __attribute__((always_inline)) {
        const auto x = values_at<Isa, Bits>(codes, format, i, count);
        const auto at = sums_at<Isa>(sums, i, count);
        const auto sum = at.load();
        at.store(squares ? fma(x, x, sum) : add(sum, x));
      });
}
template <class Isa>
SAMEBITS_INLINE void add_codes(std::uint32_t* sums, const std::byte* codes, std::int64_t n,
                               format_id format, bool squares) {
  if (format == format_id::fp32) return add_codes_of<Isa, 32>(sums, codes, n, format, squares);
  add_codes_of<Isa, 16>(sums, codes, n, format, squares);
}

template <class Isa, int Bits>
SAMEBITS_INLINE void add_products_of(std::uint32_t* weight, std::uint32_t* bias,
                                     const std::byte* grad, const std::byte* x, std::int64_t n,
                                     format_id format,
                                     const numerics::torch_2_11::row_statistics& of_row) {
  using lanes = typename Isa::word;
  const lanes mean = of_row.mean, rstd = of_row.rstd;
  for_each_register<Isa>(
      n, [&](std::size_t i, std::size_t count) __attribute__((always_inline)) {
        const lanes g = values_at<Isa, Bits>(grad, format, i, count);
        const lanes value = values_at<Isa, Bits>(x, format, i, count);
        const auto of_weight = sums_at<Isa>(weight, i, count),
                   of_bias = sums_at<Isa>(bias, i, count);
        of_weight.store(
            numerics::torch_2_11::with_product<lanes>(of_weight.load(), g, value, mean, rstd));
        of_bias.store(add(of_bias.load(), g));
      });
}
template <class Isa>
SAMEBITS_INLINE void add_products(std::uint32_t* weight, std::uint32_t* bias, const std::byte* grad,
                                  const std::byte* x, std::int64_t n, format_id format,
                                  const numerics::torch_2_11::row_statistics& of_row) {
  if (format == format_id::fp32) {
    return add_products_of<Isa, 32>(weight, bias, grad, x, n, format, of_row);
  }
  add_products_of<Isa, 16>(weight, bias, grad, x, n, format, of_row);
}

}  // namespace samebits::simd
