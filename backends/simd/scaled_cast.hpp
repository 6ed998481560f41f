// Scaled cast in lanes: elements of a row times or by the factors of their tiles, into codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/quantize.hpp"
#include "backends/simd/access.hpp"
#include "backends/simd/amax.hpp"
#include "backends/simd/nearest_add.hpp"
#include "backends/simd/random_chunk.hpp"
#include "backends/simd/rule.hpp"
#include "numerics/decode.hpp"
#include "numerics/encode.hpp"

namespace samebits::simd {

/// Elements that share one fill of random bits or one copy on the way to memory.
inline constexpr std::int64_t cast_chunk = 4096;
template <class Isa>
using cast_random = random_chunk<Isa, cast_chunk>;

/// The factors of a row of tiles: element i of the row has number i >> shift, or with `per_element`
/// number i. Behind the last one there is a vector's length of memory.
struct row_factors {
  const std::uint32_t* of;
  int shift;
  bool per_element;
  /// No element is NaN or Inf, and none rounds beyond max finite once scaled.
  bool bounded;
};

/// One call's scaled cast; `divide` by the factors or multiply.
template <class Source, class Target, class Mode, class Policy, class Field>
struct scaled_cast {
  using source_type = Source;
  using field_type = Field;
  Policy policy;
  Field field;
  bool divide;

  static constexpr int in_width = Source::spec().storage_bits;
  static constexpr bool draws = Field::value > 0;
  template <class Isa>
  static constexpr bool has_bounded = Isa::has_nearest_add&& Mode::mode() == rounding::nearest_even
                                      && !std::is_same_v<Policy, any_policy>;

  /// Element bits as read, and the factor of each.
  template <class Isa, bool Bounded>
  SAMEBITS_INLINE typename Isa::word codes(typename Isa::word in, typename Isa::word factor,
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
    } else {
      return numerics::encode<word>(to, rule, y, dither).code;
    }
  }

  /// The vector of elements from number i of the row, which is number `drawn` of the random ones.
  template <class Isa, bool Bounded>
  SAMEBITS_INLINE typename Isa::word vector(typename Isa::word in, const row_factors& f,
                                            std::int64_t i, std::int64_t drawn,
                                            const cast_random<Isa>& random) const {
    using word = typename Isa::word;
    const word factor =
        f.per_element ? load<Isa>(fixed_width<32>{}, reinterpret_cast<const std::byte*>(f.of + i))
                      : word(f.of[i >> f.shift]);
    word dither = 0u;
    if constexpr (draws) dither = random.dither(field, drawn);
    return codes<Isa, Bounded>(in, factor, dither);
  }
};

/// Whole registers of codes from contiguous elements; returns the number of elements done. See
/// cast_elements_of_chunk().
template <class Isa, bool Bounded, class Cast>
SAMEBITS_INLINE std::int64_t cast_registers(Cast c, const std::byte* in, std::byte* out,
                                            std::int64_t count, row_factors f, std::int64_t first,
                                            std::int64_t ahead, bool direct,
                                            const cast_random<Isa>& random) {
  using word = typename Isa::word;
  constexpr std::int64_t in_bytes = Cast::in_width / 8;
  constexpr std::int64_t elements = Isa::register_bytes;  // four words of codes of 8 bits
  std::int64_t i = 0;
  for (; i + elements <= count; i += elements) {
    const std::byte* from = in + i * in_bytes;
    if (ahead != 0) {
#pragma GCC unroll 4
      for (std::int64_t b = 0; b < elements * in_bytes; b += 64) {
        __builtin_prefetch(from + ahead + b);
      }
    }
    word w[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const std::int64_t at = i + k * word::count;
      w[k] = c.template vector<Isa, Bounded>(
          load<Isa>(fixed_width<Cast::in_width>{}, in + at * in_bytes), f, first + at, at, random);
    }
    if (direct) {
      Isa::stream(out + i, Isa::template pack<8>(w));
    } else {
      Isa::store_register(out + i, Isa::template pack<8>(w));
    }
  }
  return i;
}

/// Up to cast_chunk contiguous elements, `first` being the number of the first in the row.
///
/// ahead: bytes from an element to be read to one to be fetched; 0 where none is
template <class Isa, class Cast>
void cast_elements_of_chunk(const Cast& c, const std::byte* in, std::byte* out, std::int64_t count,
                            const row_factors& f, std::int64_t first, std::int64_t ahead,
                            bool direct, const cast_random<Isa>& random) {
  using word = typename Isa::word;
  constexpr std::int64_t in_bytes = Cast::in_width / 8;
  std::int64_t i = 0;
  if constexpr (Cast::template has_bounded<Isa>) {
    if (f.bounded)
      i = cast_registers<Isa, true>(c, in, out, count, f, first, ahead, direct, random);
  }
  if (i == 0) i = cast_registers<Isa, false>(c, in, out, count, f, first, ahead, direct, random);
  for (; i < count; i += word::count) {
    const std::int64_t left = smaller(word::count, count - i);
    const word x = left == word::count ? load<Isa>(fixed_width<Cast::in_width>{}, in + i * in_bytes)
                                       : load_tail<Isa, Cast::in_width>(in + i * in_bytes, left, 0);
    std::byte codes[word::count];
    store<Isa>(fixed_width<8>{}, codes, c.template vector<Isa, false>(x, f, first + i, i, random));
    __builtin_memcpy(out + i, codes, static_cast<std::size_t>(left));
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

/// Contiguous elements of a row. `index` is that of the first element's random bits.
template <class Isa, class Cast>
SAMEBITS_INLINE void cast_row(const Cast& c, const std::byte* in, std::byte* out,
                              std::int64_t count, const row_factors& f, std::uint64_t index,
                              bool stream, cast_random<Isa>& random) {
  constexpr std::int64_t in_bytes = Cast::in_width / 8;
  alignas(64) std::byte staged[cast_chunk];
  for (std::int64_t at = 0; at < count; at += cast_chunk) {
    const std::int64_t part = smaller(cast_chunk, count - at);
    if constexpr (Cast::draws) random.fill(index + static_cast<std::uint64_t>(at), part);
    // Results on a register's border go past the caches at once, others by way of a copy.
    const bool direct =
        stream && reinterpret_cast<std::uintptr_t>(out + at) % Isa::register_bytes == 0;
    const bool copy = stream && !direct;
    cast_elements_of_chunk<Isa>(c, in + at * in_bytes, copy ? staged : out + at, part, f, at,
                                stream ? count * in_bytes : 0, direct, random);
    if (copy) stream_bytes<Isa>(out + at, staged, part);
  }
}

/// Calls f(cast) for the cast of a call.
template <class Isa, class Function>
void with_cast(const backends::quantize_call& call, const Function& f) {
  const bool divide = call.scale.math == scale_math::div;
  backends::visit_quantization(
      call.in.format, call.to, call.cast.round, [&](auto source, auto target, auto mode) {
        with_policy<Isa>(mode, call.cast, [&](auto policy) {
          with_field<Isa>(mode, call.random.bits, [&](auto field) {
            f(scaled_cast<decltype(source), decltype(target), decltype(mode), decltype(policy),
                          decltype(field)>{policy, field, divide});
          });
        });
      });
}

}  // namespace samebits::simd
