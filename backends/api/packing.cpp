// Packs codes of 4 and 6 bits.
#include "samebits/packing.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "backends/api/view_checks.hpp"
#include "backends/dispatch/refuse.hpp"
#include "numerics/bits/layout.hpp"

namespace samebits {
namespace backends {
namespace {

/// Codes that fill whole bytes together: 2 of 4 bits, 4 of 6 bits.
struct group {
  int bits, codes, bytes;

  explicit group(format_id id)
      : bits(code_bits(id)), codes(bits == 4 ? 2 : 4), bytes(bits * codes / 8) {}

  /// Position of a code in the group's bytes, read with the first byte lowest or highest.
  [[nodiscard]] int shift(packing order, int code) const {
    return bits * (order == packing::low_first ? code : codes - 1 - code);
  }
  /// Position of a byte in the same number.
  [[nodiscard]] int byte_shift(packing order, int byte) const {
    return 8 * (order == packing::low_first ? byte : bytes - 1 - byte);
  }
};

void check_packing(const const_matrix_view& codes, packing order, std::span<const std::byte> memory,
                   const char* memory_name) {
  check_value("order", order, "packing");
  check_view(codes, "codes");
  check_format(codes, "codes", std::array{format_id::e2m1, format_id::e2m3, format_id::e3m2});
  check_host(codes, "codes");
  const std::int64_t needed = packed_bytes(codes.format, codes.rows, codes.cols);
  refuse_if(memory.size() != static_cast<std::size_t>(needed), memory_name, ": must have ", needed,
            " bytes for ", shape_of(codes), " in ", codes.format, ", got ", memory.size());
  check_apart({memory.data(), format_id::e8m0, 1, needed, needed}, memory_name, codes, "codes");
}

/// Packs `count` codes of a row, at most those of a group; the others are 0.
void pack_group(const group& g, packing order, const std::byte* codes, std::int64_t stride,
                int count, std::byte* out, int bytes) {
  std::uint32_t number = 0;
  const std::uint32_t mask = (1u << g.bits) - 1;
  for (int i = 0; i < count; ++i) {
    number |= (std::to_integer<std::uint32_t>(codes[i * stride]) & mask) << g.shift(order, i);
  }
  for (int i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(number >> g.byte_shift(order, i));
}

void unpack_group(const group& g, packing order, const std::byte* in, int bytes, std::byte* codes,
                  std::int64_t stride, int count) {
  std::uint32_t number = 0;
  for (int i = 0; i < bytes; ++i) {
    number |= std::to_integer<std::uint32_t>(in[i]) << g.byte_shift(order, i);
  }
  const std::uint32_t mask = (1u << g.bits) - 1;
  for (int i = 0; i < count; ++i) {
    codes[i * stride] = static_cast<std::byte>(number >> g.shift(order, i) & mask);
  }
}

/// Calls f(codes of the group, number of codes, packed bytes of the group, number of bytes).
template <class Code, class Byte, class Function>
void for_each_group(const const_matrix_view& v, Code* codes, Byte* packed, const Function& f) {
  const group g(v.format);
  const std::int64_t row_bytes = packed_row_bytes(v.format, v.cols);
  for (std::int64_t row = 0; row < v.rows; ++row) {
    Code* const first = codes + row * v.row_stride;
    Byte* const to = packed + row * row_bytes;
    for (std::int64_t i = 0; i * g.codes < v.cols; ++i) {
      f(first + i * g.codes * v.col_stride,
        static_cast<int>(std::min<std::int64_t>(g.codes, v.cols - i * g.codes)), to + i * g.bytes,
        static_cast<int>(std::min<std::int64_t>(g.bytes, row_bytes - i * g.bytes)));
    }
  }
}

/// Dense rows of two codes a byte, for any compiler to turn into SIMD code.
bool packs_pairs(const const_matrix_view& v) {
  return code_bits(v.format) == 4 && v.col_stride == 1 && v.cols % 2 == 0;
}

}  // namespace
}  // namespace backends

void pack_codes(const const_matrix_view& codes, packing order, std::span<std::byte> out) {
  namespace b = backends;
  b::check_packing(codes, order, out, "out");
  const auto* const from = static_cast<const std::byte*>(codes.data);
  if (b::packs_pairs(codes)) {
    const int even = order == packing::low_first ? 0 : 4;
    for (std::int64_t row = 0; row < codes.rows; ++row) {
      const std::byte* const in = from + row * codes.row_stride;
      std::byte* const to = out.data() + row * (codes.cols / 2);
      for (std::int64_t i = 0; i < codes.cols / 2; ++i) {
        to[i] = (in[2 * i] & std::byte{15}) << even | (in[2 * i + 1] & std::byte{15}) << (4 - even);
      }
    }
    return;
  }
  const b::group g(codes.format);
  b::for_each_group(codes, from, out.data(),
                    [&](const std::byte* in, int count, std::byte* to, int bytes) {
                      b::pack_group(g, order, in, codes.col_stride, count, to, bytes);
                    });
}

void unpack_codes(std::span<const std::byte> in, packing order, const matrix_view& codes) {
  namespace b = backends;
  b::check_packing(codes, order, in, "in");
  b::check_distinct(codes, "codes");
  auto* const to = static_cast<std::byte*>(codes.data);
  if (b::packs_pairs(codes)) {
    const int even = order == packing::low_first ? 0 : 4;
    for (std::int64_t row = 0; row < codes.rows; ++row) {
      const std::byte* const from = in.data() + row * (codes.cols / 2);
      std::byte* const out = to + row * codes.row_stride;
      for (std::int64_t i = 0; i < codes.cols / 2; ++i) {
        out[2 * i] = from[i] >> even & std::byte{15};
        out[2 * i + 1] = from[i] >> (4 - even) & std::byte{15};
      }
    }
    return;
  }
  const b::group g(codes.format);
  b::for_each_group(codes, to, in.data(),
                    [&](std::byte* out, int count, const std::byte* from, int bytes) {
                      b::unpack_group(g, order, from, bytes, out, codes.col_stride, count);
                    });
}

}  // namespace samebits
