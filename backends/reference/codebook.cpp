// Codebooks and int8 rows on every host backend: loops over blocks and rows.
#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <vector>

#include "backends/dispatch/calls/codebook.hpp"
#include "backends/dispatch/element.hpp"
#include "backends/dispatch/visit.hpp"
#include "backends/reference/reference.hpp"
#include "backends/self_test/build_flags.hpp"
#include "backends/self_test/self_test.hpp"
#include "backends/threads/parts.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/quantize/codebook.hpp"
#include "numerics/quantize/int8_rows.hpp"
#include "samebits/convert.hpp"

namespace samebits::backends {
namespace {

/// The processor's operations; require_tested() has shown that they are those of IEEE 754.
struct processor {
  static float number(std::uint32_t bits) { return std::bit_cast<float>(bits); }
  static std::uint32_t product(std::uint32_t a, std::uint32_t b) {
    return std::bit_cast<std::uint32_t>(number(a) * number(b));
  }
  static std::uint32_t quotient(std::uint32_t a, std::uint32_t b) {
    return std::bit_cast<std::uint32_t>(number(a) / number(b));
  }
  static std::uint32_t sum(std::uint32_t a, std::uint32_t b) {
    return std::bit_cast<std::uint32_t>(number(a) + number(b));
  }
};

template <format_id F>
std::uint32_t load(const std::byte* at) {
  storage_t<F> code;
  std::memcpy(&code, at, sizeof code);
  return numerics::decode<std::uint32_t>(spec_of(F), code);
}

/// The code in F of a number.
template <format_id F>
storage_t<F> code_of(std::uint32_t number) {
  return static_cast<storage_t<F>>(
      numerics::encode<std::uint32_t>(spec_of(F), cast_rule{}, number, 0).code);
}

template <format_id F>
void store(std::byte* at, std::uint32_t number) {
  const storage_t<F> code = code_of<F>(number);
  std::memcpy(at, &code, sizeof code);
}

/// Calls f(block, first element, end) for all blocks. Blocks of an odd number of elements share bytes
/// of codes with their neighbours: then one thread takes all of them.
template <class Function>
void for_each_block(std::int64_t elements, const codebook_options& o, const executor& where,
                    const Function& f) {
  const int threads = o.block % 2 == 0 || o.book == codebook::dynamic8 ? where.threads : 1;
  for_each_item(block_count(o, elements), o.block, threads,
                [&](std::int64_t b) { f(b, b * o.block, std::min(elements, (b + 1) * o.block)); });
}

/// Writes the code of element i.
void put_code(std::span<std::uint8_t> codes, codebook book, std::int64_t i, std::uint8_t code) {
  if (book == codebook::dynamic8) {
    codes[static_cast<std::size_t>(i)] = code;
    return;
  }
  std::uint8_t& pair = codes[static_cast<std::size_t>(i / 2)];
  pair = static_cast<std::uint8_t>(i % 2 == 0 ? code << 4 : pair | code);
}

/// Restores a block of 4-bit codes that begins at a whole byte, by a table of its sixteen numbers.
template <class Code>
void restore_block(const std::uint8_t* codes, const Code (&numbers)[16], std::int64_t count,
                   std::byte* out) {
  using Pair = std::conditional_t<sizeof(Code) == 2, std::uint32_t, std::uint64_t>;
  for (std::int64_t i = 0; i + 1 < count; i += 2) {
    const std::uint8_t byte = codes[i / 2];
    const Pair pair = Pair{numbers[byte >> 4]} | Pair{numbers[byte & 15]} << (8 * sizeof(Code));
    std::memcpy(out + i * std::int64_t{sizeof(Code)}, &pair, sizeof pair);  // little-endian
  }
  if (count % 2 != 0) {
    std::memcpy(out + (count - 1) * std::int64_t{sizeof(Code)}, &numbers[codes[count / 2] >> 4],
                sizeof(Code));
  }
}

/// Blocks whose numbers are converted together: conversions of a few numbers cost as much as a call.
constexpr std::int64_t blocks_together = 64;

/// Dequantizes blocks [begin, end), at most blocks_together.
template <format_id F>
void dequantize_pairs_of(std::span<const std::uint8_t> codes, std::span<const float> absmax,
                         const codebook_options& o, const matrix_view& out, std::int64_t begin,
                         std::int64_t end) {
  using code = storage_t<F>;
  constexpr std::int64_t size = sizeof(code), count = 16;
  const numerics::codebook_table& table = numerics::codebook_of(o.book, o.steps);
  std::uint32_t products[count * blocks_together];
  code numbers[blocks_together][count];
  for (std::int64_t b = begin; b < end; ++b) {
    const auto a = std::bit_cast<std::uint32_t>(absmax[static_cast<std::size_t>(b)]);
    for (std::int64_t i = 0; i < count; ++i) {
      products[(b - begin) * count + i] = processor::product(table.numbers[i], a);
    }
  }
  const std::int64_t all = (end - begin) * count;
  convert(view_of_codes(format_id::fp32, static_cast<const void*>(products), 1, all),
          view_of_codes(F, static_cast<void*>(numbers), 1, all), {}, {.threads = 1});
  auto* const to = static_cast<std::byte*>(out.data);
  for (std::int64_t b = begin; b < end; ++b) {
    std::int64_t first = b * o.block;
    const std::int64_t last = std::min(out.rows * out.cols, first + o.block);
    const code(&own)[count] = numbers[b - begin];
    if (first % 2 != 0) {  // the low half of a byte
      std::memcpy(to + first * size, &own[codes[static_cast<std::size_t>(first / 2)] & 15], size);
      ++first;
    }
    restore_block(codes.data() + first / 2, own, last - first, to + first * size);
  }
}

template <format_id F>
void dequantize_pairs(std::span<const std::uint8_t> codes, std::span<const float> absmax,
                      const codebook_options& o, const matrix_view& out, const executor& where) {
  for_each_part(
      block_count(o, out.rows * out.cols), where.threads,
      [&](element_range blocks) {
        for (std::int64_t b = blocks.begin; b < blocks.end; b += blocks_together) {
          dequantize_pairs_of<F>(codes, absmax, o, out, b,
                                 std::min(blocks.end, b + blocks_together));
        }
      },
      items_worth_a_thread(o.block));
}

template <format_id F>
void dequantize_bytes(std::span<const std::uint8_t> codes, std::span<const float> absmax,
                      const codebook_options& o, const matrix_view& out, const executor& where) {
  const numerics::codebook_table& table = numerics::codebook_of(o.book, o.steps);
  auto* const to = static_cast<std::byte*>(out.data);
  for_each_block(
      out.rows * out.cols, o, where, [&](std::int64_t block, std::int64_t first, std::int64_t end) {
        const auto a = std::bit_cast<std::uint32_t>(absmax[static_cast<std::size_t>(block)]);
        for (std::int64_t i = first; i < end; ++i) {
          const std::uint32_t number = table.numbers[codes[static_cast<std::size_t>(i)]];
          store<F>(to + i * std::int64_t{sizeof(storage_t<F>)}, processor::product(number, a));
        }
      });
}

template <format_id F>
void quantize_in_blocks(const quantize_blocks_call& call, const executor& where) {
  const auto& [book, block_size, steps] = call.options;
  const numerics::codebook_table& table = numerics::codebook_of(book, steps);
  const std::int64_t elements = call.in.rows * call.in.cols;
  const auto at = [from = static_cast<const std::byte*>(call.in.data)](std::int64_t i) {
    return load<F>(from + i * std::int64_t{sizeof(storage_t<F>)});
  };
  for_each_block(
      elements, call.options, where, [&](std::int64_t block, std::int64_t first, std::int64_t end) {
        std::uint32_t a = 0;
        for (std::int64_t i = first; i < end; ++i) {
          a = numerics::block_absmax(book, steps, a, at(i));
        }
        const numerics::codebook_scale scale =
            numerics::codebook_scale_of<processor>(book, steps, a, end - first == block_size);
        call.absmax[static_cast<std::size_t>(block)] = std::bit_cast<float>(scale.stored);
        for (std::int64_t i = first; i < end; ++i) {
          put_code(call.codes, book, i,
                   numerics::block_code<processor>(book, steps, table, scale, at(i)));
        }
      });
  if (elements % 2 != 0 && book != codebook::dynamic8) {
    put_code(call.codes, book, elements, numerics::codebook_code(table, 0));
  }
}

/// The absmaxes of blocks after double quantization.
std::vector<float> restored(const quantized_absmax& absmax) {
  std::vector<float> all(absmax.codes.size());
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::uint32_t number = numerics::dynamic8_table.numbers[absmax.codes[i]];
    const float a = absmax.absmax[i / static_cast<std::size_t>(absmax.block)];
    all[i] = std::bit_cast<float>(
        numerics::restored_absmax<processor>(number, bits(a), bits(absmax.offset)));
  }
  return all;
}

}  // namespace

void host_quantize_blocks(const quantize_blocks_call& call, const executor& where) {
  require_tested(reference);
  visit_quantized(call.in.format, [&]<format_id F>() { quantize_in_blocks<F>(call, where); });
}

void host_dequantize_blocks(const dequantize_blocks_call& call, const executor& where) {
  require_tested(reference);
  const bool nested = !call.absmax.codes.empty();
  const std::vector<float> made = nested ? restored(call.absmax) : std::vector<float>();
  const std::span<const float> absmax = nested ? made : call.absmax.absmax;
  visit_quantized(call.out.format, [&]<format_id F>() {
    if (call.options.book == codebook::dynamic8) {
      dequantize_bytes<F>(call.codes, absmax, call.options, call.out, where);
    } else {
      dequantize_pairs<F>(call.codes, absmax, call.options, call.out, where);
    }
  });
}

void host_quantize_int8(const const_matrix_view& in, codebook_steps steps,
                        std::span<std::int8_t> codes, std::span<float> absmax,
                        const executor& where) {
  require_tested(reference);
  visit_quantized(in.format, [&]<format_id F>() {
    for_each_item(in.rows, in.cols, where.threads, [&](std::int64_t r) {
      std::uint32_t a = 0;
      for (std::int64_t c = 0; c < in.cols; ++c) {
        a = numerics::block_absmax(codebook::nf4, codebook_steps::cuda, a,
                                   load<F>(element_at(in, r, c)));
      }
      absmax[static_cast<std::size_t>(r)] = std::bit_cast<float>(a);
      const std::uint32_t factor = numerics::int8_factor<processor>(steps, a);
      for (std::int64_t c = 0; c < in.cols; ++c) {
        codes[static_cast<std::size_t>(r * in.cols + c)] =
            numerics::int8_code<processor>(load<F>(element_at(in, r, c)), factor);
      }
    });
  });
}

void host_dequantize_int8(std::span<const std::int8_t> codes, std::span<const float> absmax,
                          const matrix_view& out, const executor& where) {
  require_tested(reference);
  visit_quantized(out.format, [&]<format_id F>() {
    for_each_item(out.rows, out.cols, where.threads, [&](std::int64_t r) {
      const auto a = std::bit_cast<std::uint32_t>(absmax[static_cast<std::size_t>(r)]);
      for (std::int64_t c = 0; c < out.cols; ++c) {
        const std::int8_t code = codes[static_cast<std::size_t>(r * out.cols + c)];
        store<F>(element_at(out, r, c), numerics::int8_number<processor>(code, a));
      }
    });
  });
}

}  // namespace samebits::backends
