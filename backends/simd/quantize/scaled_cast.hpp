// Scaled cast in SIMD lanes: multiplies or divides the elements of a row by the factors of their
// tiles and rounds them to codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/dispatch/calls/quantize.hpp"
#include "backends/simd/lanes/access.hpp"
#include "backends/simd/lanes/amax.hpp"
#include "backends/simd/lanes/nearest_add.hpp"
#include "backends/simd/lanes/random_chunk.hpp"
#include "backends/simd/lanes/rule.hpp"
#include "backends/simd/lanes/stochastic_add.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"

namespace samebits::simd {

/// Number of elements that share one fill of random bits, or one staging copy before streaming.
inline constexpr std::int64_t cast_chunk = 4096;
template <class Isa>
using cast_random = random_chunk<Isa, cast_chunk>;

/// The factors of a row of tiles. Element i of the row has factor i >> shift, or factor i with
/// `per_element`. The array has room for one cast_unit of further factors after the last one.
struct row_factors {
  const std::uint32_t* of;
  int shift;
  bool per_element;
  /// True if no element is NaN or Inf and no scaled element rounds beyond max finite.
  bool bounded;
};

/// Number of elements that are cast together: one register of 8-bit codes.
template <class Isa>
inline constexpr std::int64_t cast_unit = Isa::register_bytes;

/// Rounding rule and operation, for kernels in which they are not compile-time constants.
struct cast_terms {
  cast_rule rule;
  bool divide;  ///< divide by the factors instead of multiplying
};

/// Arguments of a kernel: contiguous elements of a row.
struct cast_span {
  const std::byte* in;
  std::byte* out;
  std::int64_t units;
  row_factors factors;
  std::int64_t column;  ///< column of the first element, relative to the first factor
  std::int64_t first;   ///< position of the first element in the fill of random bits
  std::int64_t ahead;   ///< prefetch distance in bytes; 0 for no prefetch
  bool direct;          ///< results bypass the caches
};

/// The kernels of a call.
template <class Isa>
struct cast_kernel {
  using function = void(const cast_terms&, const cast_span&, const cast_random<Isa>&);
  function* any;
  function* bounded;  ///< used if row_factors::bounded is set
  bool draws;
};

/// A kind of scaled cast: compile-time formats, mode and policy.
template <class Source, class Target, class Mode, class Policy, class Field, bool Bounded>
struct scaled_cast {
  Policy policy;
  bool divide;

  static constexpr int in_width = Source::spec().storage_bits;

  SAMEBITS_INLINE explicit scaled_cast(const cast_terms& terms) : divide(terms.divide) {
    if constexpr (std::is_same_v<Policy, any_policy>) {
      policy = {terms.rule.overflow, terms.rule.nan};
    }
  }

  /// Casts one register. `in` holds the element codes, `factor` the factor of each element.
  template <class Isa>
  [[nodiscard]] SAMEBITS_INLINE typename Isa::word codes(typename Isa::word in,
                                                         typename Isa::word factor,
                                                         typename Isa::word dither) const {
    using word = typename Isa::word;
    constexpr format_spec to = Target::spec();
    const cast_rule rule{Mode::mode(), policy.overflow, policy.nan};
    const word x = numerics::decode<word>(Source::spec(), in);
    word y = divide ? Isa::divide(x, factor) : Isa::multiply(x, factor);
    if constexpr (Bounded) return encode_nearest_bounded<Isa>(to, y);
    // The product's NaN must be the canonical one.
    if (policy.nan == nan_policy::preserve_sign) {
      const word nan = numerics::binary32::nan;
      y = select((y & nan) > word(numerics::binary32::inf), nan, y);
    }
    if constexpr (Isa::supports_nearest_add && Mode::mode() == rounding::nearest_even) {
      return encode_nearest<Isa>(to, rule, y);
    } else if constexpr (Isa::supports_nearest_add) {
      return encode_stochastic<Isa>(to, rule, y, Field::value, dither);
    } else {
      return numerics::encode<word>(to, rule, y, dither).code;
    }
  }
};

/// cast_kernel::function.
template <class Isa, class Cast, class Field>
void cast_registers(const cast_terms& terms, const cast_span& given,
                    const cast_random<Isa>& chunk) {
  using word = typename Isa::word;
  constexpr std::int64_t in_bytes = Cast::in_width / 8;
  const cast_span s = given;
  const row_factors f = s.factors;
  const random_reader<Isa> random = chunk.reader();
  const Cast c(terms);
  for (std::int64_t i = 0; i < s.units * cast_unit<Isa>; i += cast_unit<Isa>) {
    const std::byte* from = s.in + i * in_bytes;
    if (s.ahead != 0) {
#pragma GCC unroll 4
      for (std::int64_t b = 0; b < cast_unit<Isa> * in_bytes; b += 64) {
        __builtin_prefetch(from + s.ahead + b);
      }
    }
    word w[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const std::int64_t at = i + k * word::count;
      const std::int64_t column = s.column + at;
      const word factor = f.per_element ? load<Isa>(f.of + column) : word(f.of[column >> f.shift]);
      word dither = 0u;
      if constexpr (Field::value > 0) dither = random.dither(Field{}, s.first + at);
      w[k] = c.template codes<Isa>(load<Isa>(fixed_width<Cast::in_width>{}, s.in + at * in_bytes),
                                   factor, dither);
    }
    if (s.direct) {
      Isa::stream(s.out + i, Isa::template pack<8>(w));
    } else {
      Isa::store_register(s.out + i, Isa::template pack<8>(w));
    }
  }
}

/// Copies bytes to memory past the caches.
template <class Isa>
void stream_bytes(std::byte* out, const std::byte* from, std::int64_t count) {
  constexpr std::int64_t step = Isa::register_bytes;
  const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(out) %
                                              static_cast<std::uintptr_t>(step));
  std::int64_t i = smaller((step - past) % step, count);
  __builtin_memcpy(out, from, static_cast<std::size_t>(i));
  for (; i + step <= count; i += step) Isa::stream(out + i, Isa::load_register(from + i));
  __builtin_memcpy(out + i, from + i, static_cast<std::size_t>(count - i));
}

/// Casts the rows of a call.
template <class Isa>
struct row_cast {
  cast_kernel<Isa> kernel;
  cast_terms terms;
  std::int64_t in_bytes;
  bool stream;  ///< the call is large
  cast_random<Isa>& random;

  /// Casts contiguous elements of a row. The first element is in column 0 of the factors. `index`
  /// is the index of its random bits.
  void row(const std::byte* in, std::byte* out, std::int64_t count, const row_factors& f,
           std::uint64_t index) const {
    alignas(64) std::byte staged[cast_chunk];
    for (std::int64_t at = 0; at < count; at += cast_chunk) {
      const std::int64_t part = smaller(cast_chunk, count - at);
      if (kernel.draws) random.fill(index + static_cast<std::uint64_t>(at), part);
      // Results on a register boundary bypass the caches directly, all others through a staging
      // copy.
      const bool direct =
          stream && reinterpret_cast<std::uintptr_t>(out + at) % Isa::register_bytes == 0;
      const bool copy = stream && !direct;
      chunk({in + at * in_bytes, copy ? staged : out + at, part / cast_unit<Isa>, f, at, 0,
             stream ? count * in_bytes : 0, direct},
            part % cast_unit<Isa>);
      if (copy) stream_bytes<Isa>(out + at, staged, part);
    }
  }

 private:
  /// Casts up to cast_chunk elements: full units, then the rest through a copied unit.
  void chunk(const cast_span& s, std::int64_t rest) const {
    const auto run = s.factors.bounded ? kernel.bounded : kernel.any;
    if (s.units > 0) run(terms, s, random);
    if (rest == 0) return;
    const std::int64_t done = s.units * cast_unit<Isa>;
    alignas(64) std::byte in_copy[cast_unit<Isa> * 4] = {};
    alignas(64) std::byte out_copy[cast_unit<Isa>];
    __builtin_memcpy(in_copy, s.in + done * in_bytes, static_cast<std::size_t>(rest * in_bytes));
    run(terms, {in_copy, out_copy, 1, s.factors, s.column + done, done, 0, false}, random);
    __builtin_memcpy(s.out + done, out_copy, static_cast<std::size_t>(rest));
  }
};

/// The kernels of a call.
template <class Isa>
cast_kernel<Isa> cast_kernel_of(const backends::quantize_call& call) {
  cast_kernel<Isa> kernel{};
  backends::visit_quantization<true>(
      call.in.format, call.to, call.cast.rounding, [&](auto source, auto target, auto mode) {
        using s = decltype(source);
        using t = decltype(target);
        using m = decltype(mode);
        with_policy<Isa>(mode, call.cast, [&](auto, auto policy) {
          with_field<Isa>(mode, call.random.bits, [&](auto field) {
            using f = decltype(field);
            // overflow::ieee, the usual policy of conversions, is rare in quantization: it gets no
            // kernel of its own.
            using p = std::conditional_t<policy_is<decltype(policy), overflow::ieee>, any_policy,
                                         decltype(policy)>;
            using any = scaled_cast<s, t, m, p, f, false>;
            kernel = {cast_registers<Isa, any, f>, cast_registers<Isa, any, f>, field > 0};
            if constexpr (Isa::supports_nearest_add && m::mode() == rounding::nearest_even) {
              kernel.bounded = cast_registers<Isa, scaled_cast<s, t, m, any_policy, f, true>, f>;
            }
          });
        });
      });
  return kernel;
}

}  // namespace samebits::simd
