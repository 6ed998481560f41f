// SIMD array arithmetic on one format: the loop over registers of codes, and the choice of a
// kernel. convert_kernel.hpp says what code may be used here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/dispatch/calls/array_arithmetic.hpp"
#include "backends/dispatch/visit.hpp"
#include "backends/simd/arithmetic/arithmetic_rule.hpp"
#include "backends/simd/lanes/access.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/operation.hpp"
#include "samebits/core/table.hpp"

namespace samebits::simd {

/// Arguments of a kernel: contiguous codes of equal width in operands and result.
struct arithmetic_span {
  const std::byte* in[backends::max_operands];  ///< unused operands repeat the first one
  std::byte* out;
  std::int64_t bytes;  ///< of each operand; a multiple of the register size
  bool stream;         ///< results bypass the caches
};

using compute_kernel = void (*)(const arithmetic_span&);

/// Prefetches the operands that lie streaming::prefetch_bytes behind offset `at`.
template <int Operands>
SAMEBITS_INLINE void prefetch_operands(const arithmetic_span& s, std::int64_t at) {
#pragma GCC unroll 3
  for (int i = 0; i < Operands; ++i) __builtin_prefetch(s.in[i] + at + streaming::prefetch_bytes);
}

template <class Registers, operation Op, format_id F, overflow Policy>
void compute_registers(const arithmetic_span& given) {
  const arithmetic_span s = given;
  constexpr std::int64_t unit = Registers::register_bytes;
  constexpr int operands = operand_count(Op);
  for (std::int64_t at = 0; at < s.bytes; at += unit) {
    if (s.stream) prefetch_operands<operands>(s, at);
    const auto a = Registers::template widen<F>(s.in[0] + at);
    auto b = a;
    auto c = a;
    if constexpr (operands > 1) b = Registers::template widen<F>(s.in[1] + at);
    if constexpr (operands > 2) c = Registers::template widen<F>(s.in[2] + at);
    const auto result =
        Registers::template narrow<Op, F, Policy>(Registers::template apply<Op, F>(a, b, c));
    if (s.stream) {
      Registers::stream(s.out + at, result);
    } else {
      Registers::store(s.out + at, result);
    }
  }
}

/// The kernel of a call that supports() or supports_flags() accepts.
template <class Registers>
compute_kernel kernel_of(const backends::compute_call& call) {
  using enum overflow;
  return with_enumerator(call.op, [&]<operation Op>() {
    return backends::with_list_format(call.out.format, [&]<format_id F>() -> compute_kernel {
      if constexpr (is_computed(Op, F, Registers::steps)) {
        return call.rule.overflow == saturate ? compute_registers<Registers, Op, F, saturate>
                                              : compute_registers<Registers, Op, F, ieee>;
      } else {
        return nullptr;
      }
    });
  });
}

}  // namespace samebits::simd
