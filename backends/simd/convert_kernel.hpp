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
#include "backends/simd/access.hpp"
#include "backends/simd/nearest_add.hpp"
#include "backends/simd/random_chunk.hpp"
#include "backends/simd/rule.hpp"
#include "backends/visit.hpp"
#include "numerics/convert.hpp"

namespace samebits::simd {

using backends::run;

/// One call's conversion: formats, rule and widths, each a constant or read at run time.
template <class Source, class Target, class Mode, class Policy, class In, class Out, class Field>
struct conversion {
  using in_width_type = In;
  using out_width_type = Out;
  using field_type = Field;
  Source source;
  Target target;
  Mode mode;
  Policy policy;
  In in_width;
  Out out_width;
  Field field_width;  ///< of the random bits; 0 where the mode draws none

  static constexpr bool fixed_widths = is_fixed_width<In> && is_fixed_width<Out>;
  static constexpr bool fixed_mode = !std::is_same_v<Mode, backends::any_rounding>;
  /// Random bits of a width known at compile time.
  static constexpr bool draws = [] {
    if constexpr (is_fixed_width<Field>) return Field::value > 0;
    return false;
  }();

  template <class Isa>
  SAMEBITS_INLINE typename Isa::word codes(typename Isa::word in, typename Isa::word dither) const {
    using word = typename Isa::word;
    const cast_rule rule{mode.mode(), policy.on_overflow, policy.on_nan};
    if constexpr (Isa::has_nearest_add && fixed_widths &&
                  std::is_same_v<Mode, backends::fixed_rounding<rounding::nearest_even>>) {
      if constexpr (has_nearest_add(Target::spec())) {
        return encode_nearest<Isa>(target.spec(), rule, numerics::decode<word>(source.spec(), in));
      }
    }
    return numerics::convert<word>(source.spec(), target.spec(), rule, in, dither).code;
  }
};

template <class Source, class Target, class Mode, class Policy, class In, class Out, class Field>
conversion(Source, Target, Mode, Policy, In, Out, Field)
    -> conversion<Source, Target, Mode, Policy, In, Out, Field>;

/// Elements that share one fill of random bits or one copy of strided codes.
inline constexpr std::int64_t chunk_elements = 4096;
template <class Isa>
using chunk = random_chunk<Isa, chunk_elements>;

/// One vector of elements, the i-th of the chunk and those behind it.
template <class Isa, class Conversion>
SAMEBITS_INLINE typename Isa::word convert_vector(const Conversion& c, const std::byte* in,
                                                  std::int64_t i, const chunk<Isa>& random) {
  using word = typename Isa::word;
  const word dither = c.field_width == 0 ? word(0u) : random.dither(c.field_width, i);
  return c.template codes<Isa>(load<Isa>(c.in_width, in), dither);
}

/// Contiguous elements vector by vector; a tail goes through a full vector of copied codes.
template <class Isa, class Conversion>
SAMEBITS_INLINE void convert_vectors(const Conversion& c, const std::byte* in, std::byte* out,
                                     std::int64_t begin, std::int64_t end,
                                     const chunk<Isa>& random) {
  using word = typename Isa::word;
  const std::int64_t in_bytes = c.in_width / 8;
  const std::int64_t out_bytes = c.out_width / 8;
  constexpr std::size_t vector_bytes = sizeof(word);
  std::byte tail_in[vector_bytes] = {};
  std::byte tail_out[vector_bytes];
  for (std::int64_t i = begin; i < end; i += word::count) {
    const bool tail = i + word::count > end;
    const auto left = static_cast<std::size_t>(end - i);
    if (tail)
      __builtin_memcpy(tail_in, in + i * in_bytes, left * static_cast<std::size_t>(in_bytes));
    const word codes = convert_vector<Isa>(c, tail ? tail_in : in + i * in_bytes, i, random);
    store<Isa>(c.out_width, tail ? tail_out : out + i * out_bytes, codes);
    if (tail) {
      __builtin_memcpy(out + i * out_bytes, tail_out, left * static_cast<std::size_t>(out_bytes));
    }
  }
}

/// Fixed widths: whole registers of results, `pages` groups of `registers` of them in turn.
/// Returns the number of elements done.
///
/// ahead: elements from one to be read to one to be fetched
template <class Isa, class Conversion>
SAMEBITS_INLINE void convert_registers(const Conversion& c, const std::byte* in, std::byte* out,
                                       std::int64_t begin, std::int64_t registers,
                                       std::int64_t pages, std::int64_t ahead, bool stream,
                                       const chunk<Isa>& random) {
  using word = typename Isa::word;
  constexpr int out_width = Conversion::out_width_type::value;
  constexpr std::int64_t in_bytes = Conversion::in_width_type::value / 8;
  constexpr std::int64_t out_bytes = out_width / 8;
  constexpr int words = 32 / out_width;
  constexpr std::int64_t elements = std::int64_t{words} * word::count;
  for (std::int64_t r = 0; r < registers; ++r) {
    for (std::int64_t p = 0; p < pages; ++p) {
      const std::int64_t i = begin + (p * registers + r) * elements;
      const std::byte* from = in + i * in_bytes;
      if (stream) {
#pragma GCC unroll 8
        for (std::int64_t b = 0; b < elements * in_bytes; b += 64) {
          __builtin_prefetch(from + ahead * in_bytes + b);
        }
      }
      word w[static_cast<std::size_t>(words)];
      const auto one = [&](int k) __attribute__((always_inline)) {
        w[k] =
            convert_vector<Isa>(c, from + k * word::count * in_bytes, i + k * word::count, random);
      };
      if constexpr (Conversion::fixed_mode) {
#pragma GCC unroll 4
        for (int k = 0; k < words; ++k) one(k);
      } else {  // the text of all modes, once
#pragma GCC unroll 1
        for (int k = 0; k < words; ++k) one(k);
      }
      const auto result = Isa::template pack<out_width>(w);
      std::byte* const to = out + i * out_bytes;
      if (stream) {
        Isa::stream(to, result);
      } else {
        Isa::store_register(to, result);
      }
    }
  }
}

/// Contiguous elements of one chunk.
template <class Isa, class Conversion>
void convert_dense(const Conversion& c, const std::byte* in, std::byte* out, std::int64_t count,
                   bool stream, const chunk<Isa>& random) {
  std::int64_t done = 0;
  if constexpr (Conversion::fixed_widths) {
    constexpr int in_width = Conversion::in_width_type::value;
    constexpr int out_width = Conversion::out_width_type::value;
    constexpr std::int64_t elements = Isa::register_bytes * 8 / out_width;
    constexpr int widest = in_width > out_width ? in_width : out_width;
    constexpr std::int64_t per_page = streaming::page_bytes * 8 / widest / elements;
    constexpr std::int64_t block = streaming::pages * per_page * elements;
    // A loop over two shapes, so that the kernel's text is there once.
    while (count - done >= elements) {
      const bool whole = count - done >= block;
      const std::int64_t registers = whole ? per_page : (count - done) / elements;
      const std::int64_t pages = whole ? streaming::pages : 1;
      convert_registers<Isa>(c, in, out, done, registers, pages, pages * registers * elements,
                             stream, random);
      done += pages * registers * elements;
    }
  }
  convert_vectors<Isa>(c, in, out, done, count, random);
}

/// Contiguous elements with random bits, drawn for few at a time: their computation and the loads
/// and stores of others then overlap. `index` is that of the first element.
template <class Isa, class Conversion>
void convert_drawing(const Conversion& c, const std::byte* in, std::byte* out, std::int64_t count,
                     std::uint64_t index, bool stream, chunk<Isa>& random) {
  constexpr int in_width = Conversion::in_width_type::value;
  constexpr int out_width = Conversion::out_width_type::value;
  constexpr std::int64_t drawn =
      static_cast<std::int64_t>(philox_batch<Isa>) * 128 / Conversion::field_type::value;
  constexpr int widest = in_width > out_width ? in_width : out_width;
  constexpr std::int64_t page = larger(streaming::page_bytes * 8 / widest, drawn);
  constexpr std::int64_t registers = drawn * out_width / 8 / Isa::register_bytes;
  constexpr std::int64_t in_bytes = in_width / 8;
  constexpr std::int64_t out_bytes = out_width / 8;
  // Up to the border of a Philox block, where a fill wastes nothing.
  const auto per_block = static_cast<std::uint64_t>(128 / Conversion::field_type::value);
  std::int64_t done =
      smaller(count, static_cast<std::int64_t>((per_block - index % per_block) % per_block));
  if (done > 0) {
    random.fill(index, done);
    convert_vectors<Isa>(c, in, out, 0, done, random);
    stream = false;  // the results are no longer at the border of a register
  }
  while (count - done >= drawn) {
    const bool whole = count - done >= streaming::pages * page;
    const std::int64_t pages = whole ? streaming::pages : 1;
    const std::int64_t length = whole ? page : (count - done) / drawn * drawn;
    for (std::int64_t at = 0; at < length; at += drawn) {
      for (std::int64_t p = 0; p < pages; ++p) {
        const std::int64_t i = done + p * length + at;
        random.fill(index + static_cast<std::uint64_t>(i), drawn);
        convert_registers<Isa>(c, in + i * in_bytes, out + i * out_bytes, 0, registers, 1,
                               pages * length, stream, random);
      }
    }
    done += pages * length;
  }
  if (done < count) {
    random.fill(index + static_cast<std::uint64_t>(done), count - done);
    convert_vectors<Isa>(c, in + done * in_bytes, out + done * out_bytes, 0, count - done, random);
  }
}

/// Elements before the first result that lies on a register's border; all of them if none does.
template <class Isa>
SAMEBITS_INLINE std::int64_t elements_to_border(const run& r) {
  const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(r.out) %
                                              static_cast<std::uintptr_t>(Isa::register_bytes));
  if (past % r.out_step != 0) return r.count;
  return smaller((Isa::register_bytes - past) % Isa::register_bytes / r.out_step, r.count);
}

/// Contiguous elements of a row; `index` is that of the first.
template <class Isa, class Conversion>
SAMEBITS_INLINE void convert_contiguous(const Conversion& c, const std::byte* in, std::byte* out,
                                        std::int64_t count, std::uint64_t index, bool stream,
                                        chunk<Isa>& random) {
  if (c.field_width == 0) return convert_dense<Isa>(c, in, out, count, stream, random);
  if constexpr (Conversion::draws) {
    return convert_drawing<Isa>(c, in, out, count, index, stream, random);
  }
  for (std::int64_t at = 0; at < count; at += chunk_elements) {
    const std::int64_t part = smaller(chunk_elements, count - at);
    random.fill(index + static_cast<std::uint64_t>(at), part);
    convert_dense<Isa>(c, in + at * (c.in_width / 8), out + at * (c.out_width / 8), part, stream,
                       random);
  }
}

/// One row of contiguous elements on both sides.
template <class Isa, class Conversion>
void convert_dense_run(const Conversion& c, const run& r, bool large, chunk<Isa>& random) {
  // Results are streamed from the first border of a register on.
  const std::int64_t lead = large ? elements_to_border<Isa>(r) : r.count;
  if (lead > 0) convert_contiguous<Isa>(c, r.in, r.out, lead, r.index, false, random);
  if (lead < r.count) {
    convert_contiguous<Isa>(c, r.in + lead * r.in_step, r.out + lead * r.out_step, r.count - lead,
                            r.index + static_cast<std::uint64_t>(lead), true, random);
  }
}

/// One row of elements with gaps: chunk by chunk through dense copies.
template <class Isa, class Conversion>
void convert_strided_run(const Conversion& c, const run& r, chunk<Isa>& random) {
  const std::int64_t in_bytes = c.in_width / 8;
  const std::int64_t out_bytes = c.out_width / 8;
  std::byte in_copy[chunk_elements * 4];
  std::byte out_copy[chunk_elements * 4];
  for (std::int64_t at = 0; at < r.count; at += chunk_elements) {
    const std::int64_t count = smaller(chunk_elements, r.count - at);
    copy_codes<Isa>(in_copy, in_bytes, r.in + at * r.in_step, r.in_step, in_bytes, count);
    convert_contiguous<Isa>(c, in_copy, out_copy, count, r.index + static_cast<std::uint64_t>(at),
                            false, random);
    copy_codes<Isa>(r.out + at * r.out_step, r.out_step, out_copy, out_bytes, out_bytes, count);
  }
}

template <class Isa, class Conversion>
void convert_run(const Conversion& c, const run& r, bool large, chunk<Isa>& random) {
  const bool dense = r.in_step == c.in_width / 8 && r.out_step == c.out_width / 8;
  if (dense) return convert_dense_run<Isa>(c, r, large, random);
  convert_strided_run<Isa>(c, r, random);
}

/// A whole call without fp64, which needs words of 64 bits.
template <class Isa>
void convert(const backends::convert_call& call, backends::element_range range) {
  chunk<Isa> random(call.random);
  backends::visit_conversion(
      call.in.format, call.out.format, call.rule.round,
      [&](const auto& source, const auto& target, const auto& mode) {
        with_policy<Isa>(mode, call.rule, [&](auto policy) {
          with_field<Isa>(mode, call.random.bits, [&](auto field) {
            const conversion c{source,           target,           mode, policy,
                               width_of(source), width_of(target), field};
            const bool large = (c.in_width + c.out_width) / 8 * (range.end - range.begin) >=
                               streaming::least_bytes;
            backends::for_each_run(call, range,
                                   [&](const run& r) { convert_run<Isa>(c, r, large, random); });
            if (large) Isa::stream_fence();
          });
        });
      });
}

}  // namespace samebits::simd
