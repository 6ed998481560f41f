// Scaled cast in lanes: elements of a row times or by the factors of their tiles, into codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/dispatch/quantize.hpp"
#include "backends/simd/lanes/access.hpp"
#include "backends/simd/lanes/amax.hpp"
#include "backends/simd/lanes/nearest_add.hpp"
#include "backends/simd/lanes/random_chunk.hpp"
#include "backends/simd/lanes/rule.hpp"
#include "backends/simd/lanes/stochastic_add.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"

namespace samebits::simd {

/// Elements that share one fill of random bits or one copy on the way to memory.
inline constexpr std::int64_t cast_chunk = 4096;
template <class Isa>
using cast_random = random_chunk<Isa, cast_chunk>;

/// The factors of a row of tiles: element i of the row has number i >> shift, or with `per_element`
/// number i. Behind the last one there is memory for those of a cast_unit of elements.
struct row_factors {
  const std::uint32_t* of;
  int shift;
  bool per_element;
  /// No element is NaN or Inf, and none rounds beyond max finite once scaled.
  bool bounded;
};

/// Elements that are cast together: one register of codes of 8 bits.
template <class Isa>
inline constexpr std::int64_t cast_unit = Isa::register_bytes;

/// What a kernel reads at run time where its kind does not fix it.
struct cast_terms {
  cast_rule rule;
  bool divide;  ///< by the factors; else elements are multiplied by them
};

/// Contiguous elements of a row.
struct cast_stretch {
  const std::byte* in;
  std::byte* out;
  std::int64_t units;
  row_factors factors;
  std::int64_t column;  ///< of the first element, from where `factors` begins
  std::int64_t first;   ///< number of the first element among those drawn for
  std::int64_t ahead;   ///< bytes from an element to be read to one to be fetched; 0 where none is
  bool direct;          ///< results go past the caches
};

/// A call's kernels.
template <class Isa>
struct cast_kernel {
  using function = void(const cast_terms&, const cast_stretch&, const cast_random<Isa>&);
  function* any;
  function* bounded;  ///< for row_factors::bounded
  bool draws;
};

/// A kind of scaled cast.
template <class Source, class Target, class Mode, class Policy, class Field, bool Bounded>
struct scaled_cast {
  Policy policy;
  bool divide;

  static constexpr int in_width = Source::spec().storage_bits;

  SAMEBITS_INLINE explicit scaled_cast(const cast_terms& terms) : divide(terms.divide) {
    if constexpr (std::is_same_v<Policy, any_policy>) {
      policy = {terms.rule.on_overflow, terms.rule.on_nan};
    }
  }

  /// Element bits as read, and the factor of each.
  template <class Isa>
  [[nodiscard]] SAMEBITS_INLINE typename Isa::word codes(typename Isa::word in,
                                                         typename Isa::word factor,
                                                         typename Isa::word dither) const {
    using word = typename Isa::word;
    constexpr format_spec to = Target::spec();
    const cast_rule rule{Mode::mode(), policy.on_overflow, policy.on_nan};
    const word x = numerics::decode<word>(Source::spec(), in);
    word y = divide ? Isa::divide(x, factor) : Isa::multiply(x, factor);
    if constexpr (Bounded) return encode_nearest_bounded<Isa>(to, y);
    if (policy.on_nan == nan_policy::preserve_sign) {  // the product's NaN is the canonical one
      const word nan = numerics::binary32::nan;
      y = select((y & nan) > word(numerics::binary32::inf), nan, y);
    }
    if constexpr (Isa::has_nearest_add && Mode::mode() == rounding::nearest_even) {
      return encode_nearest<Isa>(to, rule, y);
    } else if constexpr (Isa::has_nearest_add) {
      return encode_stochastic<Isa>(to, rule, y, Field::value, dither);
    } else {
      return numerics::encode<word>(to, rule, y, dither).code;
    }
  }
};

/// cast_kernel::function.
template <class Isa, class Cast, class Field>
void cast_registers(const cast_terms& terms, const cast_stretch& given,
                    const cast_random<Isa>& drawn) {
  using word = typename Isa::word;
  constexpr std::int64_t in_bytes = Cast::in_width / 8;
  const cast_stretch s = given;
  const row_factors f = s.factors;
  const random_reader<Isa> random = drawn.reader();
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
      const word factor =
          f.per_element
              ? load<Isa>(fixed_width<32>{}, reinterpret_cast<const std::byte*>(f.of + column))
              : word(f.of[column >> f.shift]);
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

/// Copies bytes past the caches.
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

  /// Contiguous elements of a row, the first of them in column 0 of the factors. `index` is that of
  /// the first element's random bits.
  void row(const std::byte* in, std::byte* out, std::int64_t count, const row_factors& f,
           std::uint64_t index) const {
    alignas(64) std::byte staged[cast_chunk];
    for (std::int64_t at = 0; at < count; at += cast_chunk) {
      const std::int64_t part = smaller(cast_chunk, count - at);
      if (kernel.draws) random.fill(index + static_cast<std::uint64_t>(at), part);
      // Results on a register's border go past the caches at once, others by way of a copy.
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
  /// Up to cast_chunk elements: whole units, and the rest by way of a unit of copies.
  void chunk(const cast_stretch& s, std::int64_t rest) const {
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
  backends::visit_quantization(
      call.in.format, call.to, call.cast.round, [&](auto source, auto target, auto mode) {
        using s = decltype(source);
        using t = decltype(target);
        using m = decltype(mode);
        with_policy<Isa>(mode, call.cast, [&](auto, auto policy) {
          with_field<Isa>(mode, call.random.bits, [&](auto field) {
            using f = decltype(field);
            // Overflow as in conversions is rare here.
            using p = std::conditional_t<policy_is<decltype(policy), overflow::ieee>, any_policy,
                                         decltype(policy)>;
            using any = scaled_cast<s, t, m, p, f, false>;
            kernel = {cast_registers<Isa, any, f>, cast_registers<Isa, any, f>, field > 0};
            if constexpr (Isa::has_nearest_add && m::mode() == rounding::nearest_even) {
              kernel.bounded = cast_registers<Isa, scaled_cast<s, t, m, any_policy, f, true>, f>;
            }
          });
        });
      });
  return kernel;
}

}  // namespace samebits::simd
