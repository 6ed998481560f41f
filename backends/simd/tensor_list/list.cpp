// Tensor list operations on the SIMD backends: copies chunks into dense form for the kernels and
// counts their results. Compiled without instruction set flags.
#include "backends/dispatch/calls/list.hpp"

#include <algorithm>
#include <cstring>

#include "backends/simd/lanes/control_register.hpp"
#include "backends/simd/simd.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/tensor_list/inspect.hpp"
#include "numerics/tensor_list/list.hpp"
#include "numerics/tensor_list/list_ops.hpp"

namespace samebits::backends {
namespace {

using numerics::list_chunk;
using numerics::list_row;
using numerics::tensor_tables;

using conversion = void (*)(const convert_call&, element_range);

std::int64_t bytes_of(format_id format) { return spec_of(format).storage_bits / 8; }

/// Space for the elements of a chunk in any format.
struct chunk_buffer {
  alignas(64) std::byte bytes[numerics::chunk_elements * 4];
};

/// Calls f(element in the tensor, position in a dense chunk, number of elements) for the row
/// segments of a chunk. In strided rows a segment is one element.
template <class Function>
void for_each_span(const list_row& row, const list_chunk& chunk, const Function& f) {
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
std::byte* dense_codes(const list_row& row, const list_chunk& chunk, chunk_buffer& buffer) {
  if (row.dense) return numerics::element_at(row, chunk.first);
  const std::int64_t bytes = bytes_of(row.format);
  for_each_span(row, chunk, [&](const std::byte* p, std::int64_t at, std::int64_t count) {
    std::memcpy(buffer.bytes + at * bytes, p, static_cast<std::size_t>(count * bytes));
  });
  return buffer.bytes;
}

/// Copies contiguous codes back to the elements of a chunk.
void scatter(const list_row& row, const list_chunk& chunk, const std::byte* codes) {
  const std::int64_t bytes = bytes_of(row.format);
  for_each_span(row, chunk, [&](std::byte* p, std::int64_t at, std::int64_t count) {
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
std::byte* words_of(conversion convert, const list_row& row, const list_chunk& chunk,
                    chunk_buffer& words) {
  if (row.format == format_id::fp32) return dense_codes(row, chunk, words);
  chunk_buffer codes;
  convert_codes(convert, row.format, dense_codes(row, chunk, codes), format_id::fp32, words.bytes,
                chunk.count);
  return words.bytes;
}

/// Stores binary32 elements of a chunk, rounded to the tensor's format.
void store_words(conversion convert, const list_row& row, const list_chunk& chunk,
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
                        numerics::chunk_statistics& statistics, std::uint64_t* exponents) {
  const std::uint32_t minimum = numerics::min_normal(f);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t x = load_word(words, i);
    numerics::count_small(statistics, x, minimum);
    ++exponents[numerics::exponent_bucket(x)];
  }
}

template <const lane_kernels& By>
void inspect(const tensor_tables& list, element_range chunks, inspect_counts counts,
             numerics::chunk_statistics* partial_statistics, std::uint64_t* exponents) {
  const ieee_control_register ieee;
  chunk_buffer codes_buffer;
  chunk_buffer words_buffer;
  for (std::int64_t n = chunks.begin; n < chunks.end; ++n) {
    const list_chunk chunk = numerics::chunk_at(list, static_cast<std::uint64_t>(n));
    const list_row& row = list.rows[chunk.tensor];
    const format_spec& f = spec_of(row.format);
    const std::byte* const codes = dense_codes(row, chunk, codes_buffer);
    const list_lanes_kernel::sums found = By.lists.inspect(row.format, codes, chunk.count);
    numerics::chunk_statistics statistics = {};
    statistics.squares = found.squares;
    statistics.amax =
        numerics::binary32::amax_bits(numerics::decode<std::uint32_t>(f, found.maximum));
    statistics.nan = static_cast<std::uint16_t>(found.nan);
    statistics.inf = static_cast<std::uint16_t>(found.inf);
    if (counts == inspect_counts::distribution) {
      count_distribution(f, words_of(By.convert, row, chunk, words_buffer), chunk.count, statistics,
                         exponents);
    }
    partial_statistics[n] = statistics;
  }
}

bool is_finite_in(const format_spec& f, std::uint32_t word) {
  const std::uint32_t code = numerics::rounded_code(f, word);
  return numerics::binary32::magnitude(numerics::decode<std::uint32_t>(f, code)) <
         numerics::binary32::inf;
}

/// Number of elements that were finite before scaling and are not after rounding to the format.
/// Elements that were non-finite before stay non-finite.
std::uint16_t count_overflowed(format_id format, const std::byte* words, std::int64_t count,
                               const list_lanes_kernel::scaled& found) {
  const format_spec f = spec_of(format);
  if (is_finite_in(f, found.after)) return 0;  // rounding is monotone: the largest element decides
  std::uint32_t nonfinite = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!is_finite_in(f, load_word(words, i))) ++nonfinite;
  }
  return static_cast<std::uint16_t>(nonfinite - found.nonfinite);
}

template <const lane_kernels& By>
void scale(const tensor_tables& list, element_range chunks, std::uint32_t factor,
           numerics::scale_statistics* partial_statistics) {
  const ieee_control_register ieee;
  chunk_buffer buffer;
  for (std::int64_t n = chunks.begin; n < chunks.end; ++n) {
    const list_chunk chunk = numerics::chunk_at(list, static_cast<std::uint64_t>(n));
    const list_row& row = list.rows[chunk.tensor];
    std::byte* const words = words_of(By.convert, row, chunk, buffer);
    const list_lanes_kernel::scaled found = By.lists.scale(words, chunk.count, factor);
    partial_statistics[n] = {numerics::binary32::amax_bits(found.before),
                             static_cast<std::uint16_t>(found.nonfinite),
                             count_overflowed(row.format, words, chunk.count, found)};
    store_words(By.convert, row, chunk, words);
  }
}

template <const lane_kernels& By>
void axpby(const axpby_call& call, element_range chunks) {
  const ieee_control_register ieee;
  chunk_buffer x_buffer;
  chunk_buffer y_buffer;
  for (std::int64_t n = chunks.begin; n < chunks.end; ++n) {
    const list_chunk chunk = numerics::chunk_at(call.out, static_cast<std::uint64_t>(n));
    const std::byte* const x = words_of(By.convert, call.x.rows[chunk.tensor], chunk, x_buffer);
    if (x != x_buffer.bytes) {
      std::memcpy(x_buffer.bytes, x, static_cast<std::size_t>(chunk.count) * 4);
    }
    const std::byte* const y = words_of(By.convert, call.y.rows[chunk.tensor], chunk, y_buffer);
    By.lists.combine(call.a, x_buffer.bytes, call.b, y, chunk.count);
    store_words(By.convert, call.out.rows[chunk.tensor], chunk, x_buffer.bytes);
  }
}

template <const lane_kernels& By>
void accumulate(const accumulate_call& call, element_range chunks) {
  const ieee_control_register ieee;
  chunk_buffer acc_buffer;
  chunk_buffer x_buffer;
  for (std::int64_t n = chunks.begin; n < chunks.end; ++n) {
    const list_chunk chunk = numerics::chunk_at(call.acc, static_cast<std::uint64_t>(n));
    const list_row& row = call.acc.rows[chunk.tensor];
    std::byte* const acc = words_of(By.convert, row, chunk, acc_buffer);
    const std::byte* const x =
        words_of(By.convert, call.gradients.rows[chunk.tensor], chunk, x_buffer);
    By.lists.accumulate(acc, x, chunk.count, call.scale_of(chunk.tensor));
    store_words(By.convert, row, chunk, acc);
  }
}

template <const lane_kernels& By>
inline constexpr list_kernels kernels_of = {
    .inspect = inspect<By>,
    .scale = scale<By>,
    .axpby = axpby<By>,
    .accumulate = accumulate<By>,
};

}  // namespace

const list_kernels avx2_list_kernels = kernels_of<avx2_kernels>;
const list_kernels avx512_list_kernels = kernels_of<avx512_kernels>;

}  // namespace samebits::backends
