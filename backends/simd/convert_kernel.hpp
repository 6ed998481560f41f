// SIMD conversion: the one definition on lanes, once per instruction set.
//
// Included by one translation unit per instruction set. Every template here has that set's Isa
// among its arguments, and nothing else with external linkage is used but always-inlined functions:
// no code compiled with these flags can be called where the machine lacks them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/backend.hpp"
#include "backends/runs.hpp"
#include "backends/simd/philox_lanes.hpp"
#include "backends/visit.hpp"
#include "numerics/convert.hpp"
#include "numerics/random.hpp"

namespace samebits::simd {

using backends::run;

/// Elements that share one fill of the random buffer.
inline constexpr std::int64_t chunk_elements = 512;

/// A width in bits known at compile time; where it is read at run time an int stands in its place.
template <int Bits>
using fixed_width = std::integral_constant<int, Bits>;

/// One vector of codes of `width` bits each from memory of any alignment, and back.
template <class Isa, int Bits>
SAMEBITS_INLINE typename Isa::word load(fixed_width<Bits>, const std::byte* p) {
  return Isa::template load<Bits>(p);
}
template <class Isa>
SAMEBITS_INLINE typename Isa::word load(int width, const std::byte* p) {
  return width == 8    ? Isa::template load<8>(p)
         : width == 16 ? Isa::template load<16>(p)
                       : Isa::template load<32>(p);
}
template <class Isa, int Bits>
SAMEBITS_INLINE void store(fixed_width<Bits>, std::byte* p, typename Isa::word x) {
  Isa::template store<Bits>(p, x);
}
template <class Isa>
SAMEBITS_INLINE void store(int width, std::byte* p, typename Isa::word x) {
  if (width == 8) return Isa::template store<8>(p, x);
  if (width == 16) return Isa::template store<16>(p, x);
  Isa::template store<32>(p, x);
}

/// Random bits of consecutive elements: raw fields in memory, read back as lanes.
template <class Isa>
struct random_chunk {
  // The chunk's fields, those before its first element in the first block, and whole fills.
  alignas(64) std::byte bytes[chunk_elements * 4 + 16 + Isa::philox_blocks * 16];
  std::int64_t first_byte;
  std::uint32_t keep;  ///< the top K bits

  SAMEBITS_INLINE void fill(const random_stream& r, std::uint64_t index, std::int64_t count) {
    const auto per_block = static_cast<std::uint64_t>(numerics::fields_per_block(r.bits));
    const std::uint64_t last_block = ~std::uint64_t{0} / per_block;
    const std::uint64_t lead = index % per_block;
    const std::uint64_t blocks =
        (lead + static_cast<std::uint64_t>(count) + per_block - 1) / per_block;
    for (std::uint64_t b = 0; b < blocks; b += Isa::philox_blocks) {
      philox_blocks<Isa>(bytes + b * 16, r.seed, r.stream, index / per_block + b, last_block);
    }
    first_byte = static_cast<std::int64_t>(lead) * numerics::field_bits(r.bits) / 8;
    keep = ~std::uint32_t{0} << (32 - r.bits);
  }

  /// R of the chunk's elements i, i + 1, ... at the top of each lane (numerics::align_random).
  template <class Width>
  SAMEBITS_INLINE typename Isa::word dither(Width field, std::int64_t i) const {
    const auto fields = load<Isa>(field, bytes + first_byte + i * (field / 8));
    return (fields << static_cast<std::uint32_t>(32 - field)) & typename Isa::word(keep);
  }
};

/// One call's conversion: formats, rule and widths, each a constant or read at run time.
template <class Source, class Target, class In, class Out, class Field>
struct conversion {
  Source source;
  Target target;
  In in_width;
  Out out_width;
  Field field_width;  ///< of the random bits; 0 where the mode draws none
  cast_rule rule;
};

/// Converts contiguous elements; a tail goes through a full vector of copied codes.
template <class Isa, class Conversion>
SAMEBITS_INLINE void convert_dense(const Conversion& c, const std::byte* in, std::byte* out,
                                   std::int64_t count, const random_chunk<Isa>& random) {
  using word = typename Isa::word;
  const std::int64_t in_bytes = c.in_width / 8;
  const std::int64_t out_bytes = c.out_width / 8;
  const auto one_vector = [&](const std::byte* from, std::byte* to, std::int64_t i) {
    const word dither = c.field_width == 0 ? word(0u) : random.dither(c.field_width, i);
    const word codes = load<Isa>(c.in_width, from);
    const auto result =
        numerics::convert<word>(c.source.spec(), c.target.spec(), c.rule, codes, dither);
    store<Isa>(c.out_width, to, result.code);
  };
  std::int64_t i = 0;
  for (; i + word::count <= count; i += word::count) {
    one_vector(in + i * in_bytes, out + i * out_bytes, i);
  }
  if (i < count) {
    std::byte tail_in[word::count * 4] = {};
    std::byte tail_out[word::count * 4];
    const auto left = static_cast<std::size_t>(count - i);
    __builtin_memcpy(tail_in, in + i * in_bytes, left * static_cast<std::size_t>(in_bytes));
    one_vector(tail_in, tail_out, i);
    __builtin_memcpy(out + i * out_bytes, tail_out, left * static_cast<std::size_t>(out_bytes));
  }
}

/// Copies codes between places with different distances from one to the next, in bytes.
template <class Isa>
void copy_codes(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                std::int64_t bytes, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    switch (bytes) {
      case 1: __builtin_memcpy(to + i * to_step, from + i * from_step, 1); break;
      case 2: __builtin_memcpy(to + i * to_step, from + i * from_step, 2); break;
      default: __builtin_memcpy(to + i * to_step, from + i * from_step, 4); break;
    }
  }
}

/// One row: chunk by chunk, strided elements by way of dense copies.
template <class Isa, class Conversion>
void convert_run(const Conversion& c, const run& r, const random_stream& stream) {
  const std::int64_t in_bytes = c.in_width / 8;
  const std::int64_t out_bytes = c.out_width / 8;
  const bool dense_in = r.in_step == in_bytes;
  const bool dense_out = r.out_step == out_bytes;
  random_chunk<Isa> random;
  std::byte in_copy[chunk_elements * 4];
  std::byte out_copy[chunk_elements * 4];
  // Without strides and random bits there is nothing to stage, and the row is one chunk.
  const std::int64_t step = dense_in && dense_out && c.field_width == 0 ? r.count : chunk_elements;
  for (std::int64_t at = 0; at < r.count; at += step) {
    const std::int64_t left = r.count - at;
    const std::int64_t count = left < step ? left : step;
    const std::byte* in = r.in + at * r.in_step;
    std::byte* out = r.out + at * r.out_step;
    if (c.field_width != 0) random.fill(stream, r.index + static_cast<std::uint64_t>(at), count);
    if (!dense_in) copy_codes<Isa>(in_copy, in_bytes, in, r.in_step, in_bytes, count);
    convert_dense<Isa>(c, dense_in ? in : in_copy, dense_out ? out : out_copy, count, random);
    if (!dense_out) copy_codes<Isa>(out, r.out_step, out_copy, out_bytes, out_bytes, count);
  }
}

template <format_id F>
SAMEBITS_INLINE fixed_width<spec_of(F).storage_bits> width_of(backends::fixed_format<F>) {
  return {};
}
SAMEBITS_INLINE int width_of(const backends::any_format& format) {
  return format.spec().storage_bits;
}

/// Calls f(width of the random field): a constant where the mode is one.
template <class Isa, rounding R, class Function>
SAMEBITS_INLINE void with_field(backends::fixed_rounding<R>, int k, const Function& f) {
  if constexpr (R != rounding::stochastic) {
    f(fixed_width<0>{});
  } else if (numerics::field_bits(k) == 32) {
    f(fixed_width<32>{});
  } else if (numerics::field_bits(k) == 16) {
    f(fixed_width<16>{});
  } else {
    f(fixed_width<8>{});
  }
}
template <class Isa, class Function>
SAMEBITS_INLINE void with_field(const backends::any_rounding& mode, int k, const Function& f) {
  f(mode.mode() == rounding::stochastic ? numerics::field_bits(k) : 0);
}

/// A whole call without fp64, which needs words of 64 bits.
template <class Isa>
void convert(const backends::convert_call& call, backends::element_range range) {
  backends::visit_conversion(
      call.in.format, call.out.format, call.rule.round,
      [&](const auto& source, const auto& target, const auto& mode) {
        with_field<Isa>(mode, call.random.bits, [&](auto field) {
          const cast_rule rule{mode.mode(), call.rule.on_overflow, call.rule.on_nan};
          const auto in_width = width_of(source);
          const auto out_width = width_of(target);
          const conversion<std::remove_cvref_t<decltype(source)>,
                           std::remove_cvref_t<decltype(target)>, decltype(in_width),
                           decltype(out_width), decltype(field)>
              c{source, target, in_width, out_width, field, rule};
          backends::for_each_run(call, range,
                                 [&](const run& r) { convert_run<Isa>(c, r, call.random); });
        });
      });
}

}  // namespace samebits::simd
