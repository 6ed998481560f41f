// Packing: codes of 4 and 6 bits side by side, as other libraries store them, to and from one code a
// byte.
//
//   // NVFP4 codes [rows, cols] of quantize(), two a byte
//   std::vector<std::byte> packed(samebits::packed_bytes(samebits::format_id::e2m1, rows, cols));
//   samebits::pack_codes(codes, samebits::packing::low_first, packed);
//
// Each row begins at a byte of its own. Tensors that are packed without regard to rows, as those of
// bitsandbytes, are one row.
//
//   packing      4 bits: element 2i, element 2i + 1      6 bits: elements 4i .. 4i + 3
//   low_first    low half, high half of byte i           bits 0-5, 6-11, 12-17, 18-23 of bytes 3i ..
//                                                        3i + 2, the first byte lowest
//   high_first   high half, low half of byte i           bits 18-23, 12-17, 6-11, 0-5 of bytes 3i ..
//                                                        3i + 2, the first byte highest
//
// Users of each order:
// - low_first: TransformerEngine, torchao, vLLM, fouroversix, PyTorch's float4_e2m1fn_x2.
// - high_first: bitsandbytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/table.hpp"
#include "samebits/view.hpp"

namespace samebits {

enum class packing : std::uint8_t { low_first, high_first };
template <>
inline constexpr auto table_of<packing> = enum_table<packing::high_first>({"low_first",
                                                                           "high_first"});

/// Returns the bits of a code: those of sign, exponent and mantissa.
SAMEBITS_INLINE constexpr int code_bits(format_id id) {
  const format_spec f = spec_of(id);
  return (f.special == specials::scale ? 0 : 1) + f.exponent_bits + f.mantissa_bits;
}

/// Returns the bytes of a packed row of codes.
SAMEBITS_INLINE constexpr std::int64_t packed_row_bytes(format_id id, std::int64_t cols) {
  return (cols * code_bits(id) + 7) / 8;
}

/// Returns the bytes of packed codes [rows, cols].
SAMEBITS_INLINE constexpr std::int64_t packed_bytes(format_id id, std::int64_t rows,
                                                    std::int64_t cols) {
  return rows * packed_row_bytes(id, cols);
}

/// Packs codes.
///
/// @param codes  [rows, cols] in e2m1, e2m3 or e3m2, one a byte, host memory, any strides. Bits above
///   the code are ignored.
/// @param order  order of the codes within bytes
/// @param out  packed_bytes() bytes of host memory; every byte is written, missing codes as 0
/// @throws invalid_argument, before anything is written, if the codes have another format or lie in
///   device memory, if `out` has another size, or if the memory overlaps.
void pack_codes(const const_matrix_view& codes, packing order, std::span<std::byte> out);

/// Unpacks codes; the inverse of pack_codes().
///
/// @param in  packed_bytes() bytes of host memory
/// @param order  order of the codes within bytes
/// @param codes  [rows, cols] in e2m1, e2m3 or e3m2, one a byte, host memory
/// @throws invalid_argument as pack_codes() does, and if elements of `codes` share memory.
void unpack_codes(std::span<const std::byte> in, packing order, const matrix_view& codes);

}  // namespace samebits
