// Optimizer steps in SIMD lanes, compiled once per instruction set.
//
// One translation unit per instruction set includes this file, under the rules of
// backends/simd/convert/convert_kernel.hpp: every template has Isa or its Arithmetic among its
// arguments, and no standard library function is called.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/dispatch/calls/optimizer.hpp"
#include "backends/dispatch/visit.hpp"
#include "backends/simd/lanes/access.hpp"
#include "backends/simd/lanes/amax.hpp"
#include "backends/simd/simd.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/update/dynamic_codes.hpp"
#include "numerics/update/stored.hpp"
#include "numerics/update/update.hpp"

namespace samebits::simd {

/// The Arithmetic policy (numerics/update/update_arithmetic.hpp) by the steps of functions/steps_*.hpp,
/// which the lanes' namespace has.
template <class Isa>
struct update_hardware {
  using word = typename Isa::word;
  SAMEBITS_INLINE static word product(word a, word b) { return Isa::multiply(a, b); }
  SAMEBITS_INLINE static word quotient(word a, word b) { return Isa::divide(a, b); }
  SAMEBITS_INLINE static word sum(word a, word b) { return Isa::add(a, b); }
  SAMEBITS_INLINE static word fused(word a, word b, word c) { return fma(a, b, c); }
  SAMEBITS_INLINE static word square_root(word a) { return sqrt(a); }
  SAMEBITS_INLINE static word canonical(word a) { return with_canonical_nan(a); }
  /// The entries of a table of words or bytes at each lane's index.
  template <class Entry>
  SAMEBITS_INLINE static word entries(const Entry* table, word index) {
    return gather(table, index);
  }
};

/// Loads words from element i on; lanes after the last element are 0.
template <class Isa>
SAMEBITS_INLINE typename Isa::word load_words(const std::uint32_t* words, std::int64_t i,
                                              std::int64_t count) {
  return load_codes<Isa, 32>(reinterpret_cast<const std::byte*>(words), i, count);
}

/// Stores codes of Width bits from element i on; lanes after the last element are not stored.
template <class Isa, int Width>
SAMEBITS_INLINE void store_codes(std::byte* codes, std::int64_t i, std::int64_t count,
                                 typename Isa::word x) {
  std::byte* const p = codes + i * (Width / 8);
  if (i + Isa::word::count <= count) [[likely]]
    return store<Isa>(fixed_width<Width>{}, p, x);
  std::byte copy[sizeof(typename Isa::word)];
  store<Isa>(fixed_width<Width>{}, copy, x);
  __builtin_memcpy(p, copy, static_cast<std::size_t>(count - i) * (Width / 8));
}
template <class Isa>
SAMEBITS_INLINE void store_words(std::uint32_t* words, std::int64_t i, std::int64_t count,
                                 typename Isa::word x) {
  store_codes<Isa, 32>(reinterpret_cast<std::byte*>(words), i, count, x);
}

/// Rounds lanes to bf16 and back.
template <class Isa>
struct rounded_to_bf16 {
  SAMEBITS_INLINE typename Isa::word operator()(typename Isa::word x) const {
    const format_spec f = spec_of(format_id::bf16);
    const typename Isa::word zero = 0u;
    return numerics::decode(f, numerics::encode(f, cast_rule{}, x, zero).code);
  }
};

/// Updates words by one formula.
template <class Isa, class Arithmetic, class Formula, class Rounded>
void update_by(const numerics::update_constants& constants, const backends::update_words& words,
               std::int64_t count, const Rounded& rounded) {
  const numerics::update_constants c = constants;
  const backends::update_words w = words;
  for (std::int64_t i = 0; i < count; i += Isa::word::count) {
    numerics::update_element<typename Isa::word> x = {
        load_words<Isa>(w.weights, i, count), load_words<Isa>(w.gradient, i, count), 0u, 0u};
    if constexpr (Formula::states > 0) x.first = load_words<Isa>(w.states[0], i, count);
    if constexpr (Formula::states > 1) x.second = load_words<Isa>(w.states[1], i, count);
    Formula::template apply<Arithmetic>(c, x, rounded);
    if constexpr (Formula::rule != update_rule::lamb)
      store_words<Isa>(w.weights, i, count, x.weight);
    if constexpr (Formula::states > 0) store_words<Isa>(w.states[0], i, count, x.first);
    if constexpr (Formula::states > 1) store_words<Isa>(w.states[1], i, count, x.second);
  }
}

/// update_kernels::update.
template <class Isa, class Arithmetic>
void update_words(const optimizer_settings& settings, const numerics::update_constants& constants,
                  stored_format rounds_to, const backends::update_words& words,
                  std::int64_t count) {
  numerics::visit_formula(settings, [&](auto formula) {
    using type = decltype(formula);
    if constexpr (type::profile == update_profile::torch_foreach) {
      if (rounds_to == stored_format::bf16_nearest) {
        return update_by<Isa, Arithmetic, type>(constants, words, count, rounded_to_bf16<Isa>{});
      }
    }
    update_by<Isa, Arithmetic, type>(constants, words, count, numerics::not_rounded{});
  });
}

/// update_kernels::read_halves.
template <class Isa, class Arithmetic>
void read_halves(low_part kind, const std::byte* high, const std::byte* low, std::uint32_t* words,
                 std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += Isa::word::count) {
    const numerics::two_halves<typename Isa::word> x = {load_codes<Isa, 16>(high, i, count),
                                                        load_codes<Isa, 16>(low, i, count)};
    store_words<Isa>(words, i, count,
                     kind == low_part::split ? numerics::joined_weight(x)
                                             : numerics::compensated_weight<Arithmetic>(x));
  }
}

/// update_kernels::write_halves.
template <class Isa, class Arithmetic>
void write_halves(low_part kind, std::byte* high, std::byte* low, const std::uint32_t* words,
                  std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += Isa::word::count) {
    const typename Isa::word x = load_words<Isa>(words, i, count);
    const auto halves =
        kind == low_part::split ? numerics::split_weight(x) : numerics::kahan_weight<Arithmetic>(x);
    store_codes<Isa, 16>(high, i, count, halves.high);
    store_codes<Isa, 16>(low, i, count, halves.low);
  }
}

/// update_kernels::direction.
template <class Isa, class Arithmetic>
void direction(const optimizer_settings& settings, const numerics::update_constants& constants,
               const backends::update_words& words, std::uint32_t* out, std::int64_t count) {
  using enum update_profile;
  for (std::int64_t i = 0; i < count; i += Isa::word::count) {
    const numerics::update_element<typename Isa::word> x = {
        load_words<Isa>(words.weights, i, count), 0u, load_words<Isa>(words.states[0], i, count),
        load_words<Isa>(words.states[1], i, count)};
    const typename Isa::word u = settings.profile == strict
                                     ? numerics::lamb_direction<strict, Arithmetic>(constants, x)
                                     : numerics::lamb_direction<fma, Arithmetic>(constants, x);
    store_words<Isa>(out, i, count, u);
  }
}

/// update_kernels::move.
template <class Isa, class Arithmetic>
void move(std::uint32_t factor, const std::uint32_t* direction, std::uint32_t* weights,
          std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += Isa::word::count) {
    const typename Isa::word moved = numerics::lamb_weight<Arithmetic>(
        typename Isa::word(factor), load_words<Isa>(direction, i, count),
        load_words<Isa>(weights, i, count));
    store_words<Isa>(weights, i, count, Arithmetic::canonical(moved));
  }
}

template <class Isa, class Arithmetic, format_id F>
void rescale_codes(const std::byte* codes, std::uint32_t scale, std::uint32_t* words,
                   std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += Isa::word::count) {
    const typename Isa::word code = load_codes<Isa, spec_of(F).storage_bits>(codes, i, count);
    store_words<Isa>(words, i, count,
                     Arithmetic::product(numerics::decode(spec_of(F), code), scale));
  }
}

/// rescale() for dynamic codes.
template <class Isa, class Arithmetic>
void rescale_dynamic(const numerics::dynamic_table& table, const std::byte* codes,
                     std::uint32_t scale, std::uint32_t* words, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += Isa::word::count) {
    const auto value = Arithmetic::entries(table.values, load_codes<Isa, 8>(codes, i, count));
    store_words<Isa>(words, i, count, Arithmetic::product(value, scale));
  }
}

/// update_kernels::rescale.
template <class Isa, class Arithmetic>
void rescale(stored_format format, const std::byte* codes, std::uint32_t scale,
             std::uint32_t* words, std::int64_t count) {
  if (is_dynamic(format)) {
    const numerics::dynamic_table& table = numerics::dynamic_table_of(format);
    return rescale_dynamic<Isa, Arithmetic>(table, codes, scale, words, count);
  }
  backends::with_list_format(numerics::codes_format(format), [&]<format_id F>() {
    rescale_codes<Isa, Arithmetic, F>(codes, scale, words, count);
  });
}

/// update_kernels::amax.
template <class Isa>
std::uint32_t amax_of_words(const std::uint32_t* words, std::int64_t count) {
  typename Isa::word maximum = 0u;
  for (std::int64_t i = 0; i < count; i += Isa::word::count) {
    const typename Isa::word magnitude =
        load_words<Isa>(words, i, count) & typename Isa::word(~numerics::binary32::sign_bit);
    maximum = max_word(maximum, magnitude);
  }
  return Isa::largest(maximum);
}

template <class Isa, class Arithmetic, stored_format F>
void codes_of_words(const std::uint32_t* words, std::uint32_t factor, std::byte* codes,
                    std::int64_t count) {
  constexpr format_spec to = spec_of(numerics::codes_format(F));
  const typename Isa::word zero = 0u;
  for (std::int64_t i = 0; i < count; i += Isa::word::count) {
    const typename Isa::word y = Arithmetic::product(load_words<Isa>(words, i, count), factor);
    store_codes<Isa, to.storage_bits>(codes, i, count,
                                      numerics::encode(to, numerics::stored_rule(F), y, zero).code);
  }
}

/// scaled_codes() for dynamic codes.
template <class Isa, class Arithmetic>
void dynamic_codes_of_words(const numerics::dynamic_table& table, const std::uint32_t* words,
                            std::uint32_t factor, std::byte* codes, std::int64_t count) {
  using word = typename Isa::word;
  const auto start = [&](word i) { return Arithmetic::entries(table.starts, i); };
  const auto border = [&](word i) { return Arithmetic::entries(table.borders, i); };
  for (std::int64_t i = 0; i < count; i += Isa::word::count) {
    const word y = Arithmetic::product(load_words<Isa>(words, i, count), factor);
    store_codes<Isa, 8>(codes, i, count, numerics::dynamic_code(start, border, y));
  }
}

/// update_kernels::scaled_codes.
template <class Isa, class Arithmetic>
void scaled_codes(stored_format format, const std::uint32_t* words, std::uint32_t factor,
                  std::byte* codes, std::int64_t count) {
  using enum stored_format;
  if (is_dynamic(format)) {
    const numerics::dynamic_table& table = numerics::dynamic_table_of(format);
    return dynamic_codes_of_words<Isa, Arithmetic>(table, words, factor, codes, count);
  }
  switch (format) {
    case fp16_scaled:
      return codes_of_words<Isa, Arithmetic, fp16_scaled>(words, factor, codes, count);
    case e5m2_scaled:
      return codes_of_words<Isa, Arithmetic, e5m2_scaled>(words, factor, codes, count);
    default: return codes_of_words<Isa, Arithmetic, e4m3_scaled>(words, factor, codes, count);
  }
}

/// Squares and Unscaled are functions of other translation units.
template <class Isa, class Arithmetic, auto& Squares, auto& Unscaled>
inline constexpr backends::update_kernels update_kernels_of = {
    .in_scope = backends::in_ieee_state,
    .update = update_words<Isa, Arithmetic>,
    .rescale = rescale<Isa, Arithmetic>,
    .amax = amax_of_words<Isa>,
    .scaled_codes = scaled_codes<Isa, Arithmetic>,
    .unscaled_codes = Unscaled,
    .read_halves = read_halves<Isa, Arithmetic>,
    .write_halves = write_halves<Isa, Arithmetic>,
    .direction = direction<Isa, Arithmetic>,
    .move = move<Isa, Arithmetic>,
    .squares = Squares,
};

}  // namespace samebits::simd
