// Tensor list operations on the SIMD backends: copies chunks into dense form for the kernels and
// counts their results. Compiled without instruction set flags.
#include "backends/dispatch/plan.hpp"

#include <algorithm>
#include <cstring>

#include "backends/simd/lanes/control_register.hpp"
#include "backends/simd/simd.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/tensor_list/inspect.hpp"
#include "numerics/tensor_list/plan.hpp"
#include "numerics/tensor_list/plan_ops.hpp"

namespace samebits::backends {
namespace {

using numerics::plan_chunk;
using numerics::plan_row;
using numerics::plan_tables;

using conversion = void (*)(const convert_call&, element_range);

std::int64_t bytes_of(format_id format) { return spec_of(format).storage_bits / 8; }

/// Space for the elements of a chunk in any format.
struct chunk_buffer {
  alignas(64) std::byte bytes[numerics::chunk_elements * 4];
};

/// Calls f(element in the tensor, position in a dense chunk, number of elements) for the row
/// segments of a chunk. In strided rows a segment is one element.
template <class Function>
void for_each_stretch(const plan_row& row, const plan_chunk& chunk, const Function& f) {
  std::int64_t done = 0;
  while (done < chunk.count) {
    const std::int64_t i = chunk.first + done;
    const std::int64_t in_row = row.cols - i % row.cols;
    const std::int64_t count =
        row.col_stride == 1 ? std::min(in_row, chunk.count - done) : std::int64_t{1};
    f(numerics::element_at(row, i), done, count);
    done += count;
  }
}

/// The codes of a chunk in contiguous memory: in place if dense, else copied to the buffer.
std::byte* dense_codes(const plan_row& row, const plan_chunk& chunk, chunk_buffer& buffer) {
  if (row.dense) return numerics::element_at(row, chunk.first);
  const std::int64_t bytes = bytes_of(row.format);
  for_each_stretch(row, chunk, [&](const std::byte* p, std::int64_t at, std::int64_t count) {
    std::memcpy(buffer.bytes + at * bytes, p, static_cast<std::size_t>(count * bytes));
  });
  return buffer.bytes;
}

/// Copies contiguous codes back to the elements of a chunk.
void scatter(const plan_row& row, const plan_chunk& chunk, const std::byte* codes) {
  const std::int64_t bytes = bytes_of(row.format);
  for_each_stretch(row, chunk, [&](std::byte* p, std::int64_t at, std::int64_t count) {
    std::memcpy(p, codes + at * bytes, static_cast<std::size_t>(count * bytes));
  });
}

/// Converts codes with nearest even, overflow::ieee and the canonical NaN.
void convert_codes(conversion convert, format_id from, const std::byte* in, format_id to,
                   std::byte* out, std::int64_t count) {
  convert({{in, from, 1, count, count, 1, memory_space::host},
           {out, to, 1, count, count, 1, memory_space::host},
           cast_rule{},
           {},
           0},
          {0, count});
}

/// The elements of a chunk as binary32: in place if possible, else in the buffer.
std::byte* words_of(conversion convert, const plan_row& row, const plan_chunk& chunk,
                    chunk_buffer& words) {
  if (row.format == format_id::fp32) return dense_codes(row, chunk, words);
  chunk_buffer codes;
  convert_codes(convert, row.format, dense_codes(row, chunk, codes), format_id::fp32, words.bytes,
                chunk.count);
  return words.bytes;
}

/// Stores binary32 elements of a chunk, rounded to the tensor's format.
void store_words(conversion convert, const plan_row& row, const plan_chunk& chunk,
                 const std::byte* words) {
  std::byte* const dense = row.dense ? numerics::element_at(row, chunk.first) : nullptr;
  if (words == dense) return;
  if (row.format == format_id::fp32) {
    if (row.dense) {
      std::memcpy(dense, words, static_cast<std::size_t>(chunk.count) * 4);
    } else {
      scatter(row, chunk, words);
    }
    return;
  }
  chunk_buffer codes;
  std::byte* const out = row.dense ? dense : codes.bytes;
  convert_codes(convert, format_id::fp32, words, row.format, out, chunk.count);
  if (!row.dense) scatter(row, chunk, out);
}

std::uint32_t load_word(const std::byte* words, std::int64_t i) {
  std::uint32_t word = 0;
  std::memcpy(&word, words + i * 4, sizeof word);
  return word;
}

/// Counts zeros, subnormals and exponents of binary32 elements.
void count_distribution(const format_spec& f, const std::byte* words, std::int64_t count,
                        numerics::chunk_tally& tally, std::uint64_t* exponents) {
  const std::uint32_t least = numerics::least_normal(f);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t x = load_word(words, i);
    numerics::count_small(tally, x, least);
    ++exponents[numerics::exponent_bucket(x)];
  }
}

template <const plan_lanes_kernel& Kernel, conversion Convert>
void inspect(const plan_tables& plan, element_range chunks, inspect_counts counts,
             numerics::chunk_tally* tallies, std::uint64_t* exponents) {
  const ieee_control_register ieee;
  chunk_buffer codes_buffer;
  chunk_buffer words_buffer;
  for (std::int64_t n = chunks.begin; n < chunks.end; ++n) {
    const plan_chunk chunk = numerics::chunk_at(plan, static_cast<std::uint64_t>(n));
    const plan_row& row = plan.rows[chunk.tensor];
    const format_spec& f = spec_of(row.format);
    const std::byte* const codes = dense_codes(row, chunk, codes_buffer);
    const plan_lanes_kernel::sums found = Kernel.inspect(row.format, codes, chunk.count);
    numerics::chunk_tally tally = {};
    tally.squares = found.squares;
    tally.amax = numerics::binary32::amax_bits(numerics::decode<std::uint32_t>(f, found.most));
    tally.nan = static_cast<std::uint16_t>(found.nan);
    tally.inf = static_cast<std::uint16_t>(found.inf);
    if (counts == inspect_counts::distribution) {
      count_distribution(f, words_of(Convert, row, chunk, words_buffer), chunk.count, tally,
                         exponents);
    }
    tallies[n] = tally;
  }
}

bool is_finite_in(const format_spec& f, std::uint32_t word) {
  const std::uint32_t stored = numerics::stored_code(f, word);
  return numerics::binary32::magnitude(numerics::decode<std::uint32_t>(f, stored)) <
         numerics::binary32::inf;
}

/// Number of elements that were finite before scaling and are not after rounding to the format.
/// Elements that were non-finite before stay non-finite.
std::uint16_t count_overflowed(format_id format, const std::byte* words, std::int64_t count,
                               const plan_lanes_kernel::scaled& found) {
  const format_spec f = spec_of(format);
  if (is_finite_in(f, found.after)) return 0;  // rounding is monotone: the largest element decides
  std::uint32_t nonfinite = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!is_finite_in(f, load_word(words, i))) ++nonfinite;
  }
  return static_cast<std::uint16_t>(nonfinite - found.nonfinite);
}

template <const plan_lanes_kernel& Kernel, conversion Convert>
void scale(const plan_tables& plan, element_range chunks, std::uint32_t factor,
           numerics::scale_tally* tallies) {
  const ieee_control_register ieee;
  chunk_buffer buffer;
  for (std::int64_t n = chunks.begin; n < chunks.end; ++n) {
    const plan_chunk chunk = numerics::chunk_at(plan, static_cast<std::uint64_t>(n));
    const plan_row& row = plan.rows[chunk.tensor];
    std::byte* const words = words_of(Convert, row, chunk, buffer);
    const plan_lanes_kernel::scaled found = Kernel.scale(words, chunk.count, factor);
    tallies[n] = {numerics::binary32::amax_bits(found.before),
                  static_cast<std::uint16_t>(found.nonfinite),
                  count_overflowed(row.format, words, chunk.count, found)};
    store_words(Convert, row, chunk, words);
  }
}

template <const plan_lanes_kernel& Kernel, conversion Convert>
void axpby(const axpby_call& call, element_range chunks) {
  const ieee_control_register ieee;
  chunk_buffer x_buffer;
  chunk_buffer y_buffer;
  for (std::int64_t n = chunks.begin; n < chunks.end; ++n) {
    const plan_chunk chunk = numerics::chunk_at(call.out, static_cast<std::uint64_t>(n));
    const std::byte* const x = words_of(Convert, call.x.rows[chunk.tensor], chunk, x_buffer);
    if (x != x_buffer.bytes) {
      std::memcpy(x_buffer.bytes, x, static_cast<std::size_t>(chunk.count) * 4);
    }
    const std::byte* const y = words_of(Convert, call.y.rows[chunk.tensor], chunk, y_buffer);
    Kernel.combine(call.a, x_buffer.bytes, call.b, y, chunk.count);
    store_words(Convert, call.out.rows[chunk.tensor], chunk, x_buffer.bytes);
  }
}

template <const plan_lanes_kernel& Kernel, conversion Convert>
void accumulate(const accumulate_call& call, element_range chunks) {
  const ieee_control_register ieee;
  chunk_buffer acc_buffer;
  chunk_buffer x_buffer;
  for (std::int64_t n = chunks.begin; n < chunks.end; ++n) {
    const plan_chunk chunk = numerics::chunk_at(call.acc, static_cast<std::uint64_t>(n));
    const plan_row& row = call.acc.rows[chunk.tensor];
    std::byte* const acc = words_of(Convert, row, chunk, acc_buffer);
    const std::byte* const x =
        words_of(Convert, call.gradients.rows[chunk.tensor], chunk, x_buffer);
    Kernel.accumulate(acc, x, chunk.count, call.scale_of(chunk.tensor));
    store_words(Convert, row, chunk, acc);
  }
}

template <const plan_lanes_kernel& Kernel, conversion Convert>
inline constexpr plan_kernels kernels_of = {
    .inspect = inspect<Kernel, Convert>,
    .scale = scale<Kernel, Convert>,
    .axpby = axpby<Kernel, Convert>,
    .accumulate = accumulate<Kernel, Convert>,
};

}  // namespace

const plan_kernels avx2_plan_kernels = kernels_of<avx2_plan_lanes, avx2_convert>;
const plan_kernels avx512_plan_kernels = kernels_of<avx512_plan_lanes, avx512_convert>;

}  // namespace samebits::backends
