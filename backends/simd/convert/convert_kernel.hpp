// SIMD conversion of full registers: applies the definition in numerics/ to SIMD lanes, one kernel
// per kind of conversion.
//
// One translation unit per instruction set includes this file. Two rules keep code for one
// instruction set from being called on a machine without it:
// - Every template here has the Isa among its arguments.
// - All other functions used here are always inlined or have internal linkage. No function of the
//   standard library is called, because the linker keeps one copy of it for the whole program.
//
// A kernel contains only one loop, because its code is repeated for every kind. convert_walk.hpp
// has the code that all kinds share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/dispatch/backend.hpp"
#include "backends/dispatch/visit.hpp"
#include "backends/simd/lanes/access.hpp"
#include "backends/simd/lanes/nearest_add.hpp"
#include "backends/simd/lanes/random_chunk.hpp"
#include "backends/simd/lanes/rule.hpp"
#include "backends/simd/lanes/stochastic_add.hpp"
#include "numerics/bits/convert.hpp"

namespace samebits::simd {

/// Max number of elements per fill of random bits: one Philox batch of 8-bit fields.
template <class Isa>
inline constexpr std::int64_t max_random_elements = static_cast<std::int64_t>(philox_batch<Isa>) *
                                                    16;
template <class Isa>
using convert_random = random_chunk<Isa, max_random_elements<Isa>>;

/// Formats and rounding rule, for kernels in which they are not compile-time constants.
struct convert_rows {
  format_spec from, to;
  cast_rule rule;
};

/// Arguments of a kernel: contiguous elements, `batches` batches of `units` units.
struct row_span {
  const std::byte* in;
  std::byte* out;
  std::int64_t batches;
  std::int64_t units;   ///< 1 in kernels that never use random bits
  std::uint64_t index;  ///< index of the first element, for its random bits
  bool stream;          ///< results bypass the caches
};

/// A kernel and the sizes that its caller needs.
template <class Isa>
struct convert_kernel {
  /// Converts; generates random bits for each batch.
  void (*run)(const convert_rows&, const row_span&, convert_random<Isa>&);
  std::int64_t unit;   ///< elements that are converted together
  std::int64_t batch;  ///< elements of a batch without random bits
  int field_width;     ///< field width of the random bits; 0 if the mode uses none
};

/// A kind of conversion. Formats, rule and widths are each a constant or a run-time value.
template <class Source, class Target, class Mode, class Policy, class Field>
struct conversion {
  Source source;
  Target target;
  Mode mode;
  Policy policy;
  Field field_width;

  static constexpr bool fixed_mode = !std::is_same_v<Mode, backends::any_rounding>;
  static constexpr bool can_draw = !std::is_same_v<Field, fixed_width<0>>;
  static constexpr bool fixed_target = !std::is_same_v<Target, backends::any_format>;

  SAMEBITS_INLINE explicit conversion(const convert_rows& rows, int field) {
    if constexpr (std::is_same_v<Source, backends::any_format>) source.row = rows.from;
    if constexpr (!fixed_target) target.row = rows.to;
    if constexpr (!fixed_mode) mode.value = rows.rule.rounding;
    if constexpr (std::is_same_v<Policy, any_policy>) {
      policy = {rows.rule.overflow, rows.rule.nan};
    }
    if constexpr (!is_fixed_width<Field>) {
      field_width = mode.mode() == rounding::stochastic ? field : 0;
    }
  }

  template <class Isa>
  [[nodiscard]] SAMEBITS_INLINE typename Isa::word codes(typename Isa::word in,
                                                         typename Isa::word dither) const {
    using word = typename Isa::word;
    const cast_rule rule{mode.mode(), policy.overflow, policy.nan};
    if constexpr (Isa::supports_nearest_add && fixed_target && fixed_mode) {
      if constexpr (supports_nearest_add(Target::spec())) {
        const word x = numerics::decode<word>(source.spec(), in);
        if constexpr (Mode::mode() == rounding::nearest_even) {
          return encode_nearest<Isa>(target.spec(), rule, x);
        } else if constexpr (Mode::mode() == rounding::stochastic) {
          return encode_stochastic<Isa>(target.spec(), rule, x, Field::value, dither);
        }
      }
    }
    return numerics::convert<word>(source.spec(), target.spec(), rule, in, dither).code;
  }

  /// Number of elements that are converted together: one register of codes if the width is fixed,
  /// else one register of words.
  template <class Isa>
  static constexpr std::int64_t unit() {
    if constexpr (fixed_target) return Isa::register_bytes * 8 / Target::spec().storage_bits;
    return Isa::word::count;
  }
};

/// Converts one unit.
template <class Isa, class Conversion>
SAMEBITS_INLINE void convert_unit(const Conversion& c, const std::byte* in, std::byte* out,
                                  const random_reader<Isa>& random, std::int64_t first,
                                  bool stream) {
  using word = typename Isa::word;
  const auto in_width = width_of(c.source);
  const auto one = [&](std::int64_t i) __attribute__((always_inline)) {
    word dither = 0u;
    if (c.field_width != 0) dither = random.dither(c.field_width, first + i);
    return c.template codes<Isa>(load<Isa>(in_width, in + i * (in_width / 8)), dither);
  };
  if constexpr (Conversion::fixed_target) {
    constexpr int out_width = decltype(width_of(c.target))::value;
    constexpr int words = 32 / out_width;
    word w[static_cast<std::size_t>(words)];
    if constexpr (Conversion::fixed_mode) {
#pragma GCC unroll 4
      for (int k = 0; k < words; ++k) w[k] = one(k * word::count);
    } else {  // all modes share this code
#pragma GCC unroll 1
      for (int k = 0; k < words; ++k) w[k] = one(k * word::count);
    }
    const auto result = Isa::template pack<out_width>(w);
    if (stream) [[likely]] {
      Isa::stream(out, result);
    } else {
      Isa::store_register(out, result);
    }
  } else {
    store<Isa>(width_of(c.target), out, one(0));
  }
}

/// Prefetches the operands of the unit that lies streaming::prefetch_bytes behind `p`.
SAMEBITS_INLINE void prefetch(const std::byte* p, std::int64_t bytes) {
#pragma GCC unroll 8
  for (std::int64_t at = 0; at < bytes; at += 64) {
    __builtin_prefetch(p + streaming::prefetch_bytes + at);
  }
}

/// convert_kernel::run.
template <class Isa, class Conversion>
void convert_span(const convert_rows& rows, const row_span& given, convert_random<Isa>& random) {
  const row_span s = given;
  const Conversion c(rows, random.field_width());
  constexpr std::int64_t unit = Conversion::template unit<Isa>();
  const std::int64_t units = Conversion::can_draw ? s.units : 1;
  const std::int64_t in_bytes = width_of(c.source) / 8;
  const std::int64_t out_bytes = width_of(c.target) / 8;
  const std::int64_t batch = units * unit;
  const std::int64_t count = s.batches * batch;
  for (std::int64_t first = 0; first < count; first += batch) {
    random_reader<Isa> reader{};
    if (c.field_width != 0) {
      random.fill(s.index + static_cast<std::uint64_t>(first), batch);
      reader = random.reader();
    }
    for (std::int64_t i = 0; i < batch; i += unit) {
      const std::byte* from = s.in + (first + i) * in_bytes;
      if (s.stream) [[likely]]
        prefetch(from, unit * in_bytes);
      convert_unit<Isa>(c, from, s.out + (first + i) * out_bytes, reader, i, s.stream);
    }
  }
}

/// The kernel of a kind. With a run-time mode, all sources but fp32 share one kernel: rounding in
/// any mode takes so long that the cost of run-time decoding hardly matters.
template <class Isa, class Source, class Target, class Mode, class Policy, class Field>
convert_kernel<Isa> kernel_of_kind(const Source&, const Target&, const Mode&, const Policy&,
                                   const Field& field) {
  constexpr bool shared = std::is_same_v<Mode, backends::any_rounding> &&
                          !std::is_same_v<Source, backends::fixed_format<format_id::fp32>>;
  using kind = conversion<std::conditional_t<shared, backends::any_format, Source>, Target, Mode,
                          Policy, Field>;
  constexpr std::int64_t unit = kind::template unit<Isa>();
  // random.fill() is a call that preserves no vector registers: constants are reloaded after each
  // batch.
  return {convert_span<Isa, kind>, unit, kind::can_draw ? 16 * unit : unit, field};
}

/// The kernel of a call.
template <class Isa>
convert_kernel<Isa> kernel_of(const backends::convert_call& call) {
  convert_kernel<Isa> kernel{};
  backends::visit_conversion(
      call.in.format, call.out.format, call.rule.rounding,
      [&](const auto& source, const auto& target, const auto& given_mode) {
        with_policy<Isa>(given_mode, call.rule, [&](const auto& mode, const auto& policy) {
          with_field<Isa>(mode, call.random.bits, [&](const auto& field) {
            kernel = kernel_of_kind<Isa>(source, target, mode, policy, field);
          });
        });
      });
  return kernel;
}

}  // namespace samebits::simd
