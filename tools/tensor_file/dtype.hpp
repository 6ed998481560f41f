// The element types of tensor files: one row each, with the names in .safetensors and .npy.
//
// Sources: safetensors format, "dtype"; NumPy array interface, "typestr" (kind and size in bytes).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "samebits/core/format.hpp"

namespace samebits::tensor_file {

// The enumerator, then the members of dtype_spec.
// clang-format off
#define SAMEBITS_DTYPES(ONE) \
  ONE(boolean, "BOOL", "b1", 8, 1, std::nullopt) \
  ONE(u8, "U8", "u1", 8, 1, std::nullopt) \
  ONE(i8, "I8", "i1", 8, 1, std::nullopt) \
  ONE(i16, "I16", "i2", 16, 2, std::nullopt) \
  ONE(u16, "U16", "u2", 16, 2, std::nullopt) \
  ONE(i32, "I32", "i4", 32, 4, std::nullopt) \
  ONE(u32, "U32", "u4", 32, 4, std::nullopt) \
  ONE(i64, "I64", "i8", 64, 8, std::nullopt) \
  ONE(u64, "U64", "u8", 64, 8, std::nullopt) \
  ONE(f16, "F16", "f2", 16, 2, format_id::fp16) \
  ONE(bf16, "BF16", "", 16, 2, format_id::bf16) \
  ONE(f32, "F32", "f4", 32, 4, format_id::fp32) \
  ONE(f64, "F64", "f8", 64, 8, format_id::fp64) \
  ONE(c64, "C64", "c8", 64, 4, std::nullopt) \
  ONE(c128, "C128", "c16", 128, 8, std::nullopt) \
  ONE(f8_e5m2, "F8_E5M2", "", 8, 1, format_id::e5m2) \
  ONE(f8_e4m3, "F8_E4M3", "", 8, 1, format_id::e4m3) \
  ONE(f8_e8m0, "F8_E8M0", "", 8, 1, format_id::e8m0) \
  ONE(f8_e4m3fnuz, "F8_E4M3FNUZ", "", 8, 1, format_id::e4m3fnuz) \
  ONE(f8_e5m2fnuz, "F8_E5M2FNUZ", "", 8, 1, format_id::e5m2fnuz) \
  ONE(f6_e2m3, "F6_E2M3", "", 6, 1, format_id::e2m3) \
  ONE(f6_e3m2, "F6_E3M2", "", 6, 1, format_id::e3m2) \
  ONE(f4, "F4", "", 4, 1, format_id::e2m1)
// clang-format on

#define SAMEBITS_NAME(ID, ...) ID,
enum class dtype : std::uint8_t { SAMEBITS_DTYPES(SAMEBITS_NAME) };
#undef SAMEBITS_NAME

/// One element type as a data row.
struct dtype_spec {
  const char* name;     ///< the safetensors name; C128, which only .npy has, follows its pattern
  const char* npy;      ///< kind and size in a .npy descr; "" if NumPy has no such type
  int bits;             ///< bits of one element in the file
  int component_bytes;  ///< unit of byte swapping: half an element for complex numbers
  std::optional<format_id> format;  ///< the samebits format of the elements' codes
};

#define SAMEBITS_ROW(ID, ...) dtype_spec{__VA_ARGS__},
inline constexpr std::array dtype_specs = {SAMEBITS_DTYPES(SAMEBITS_ROW)};
#undef SAMEBITS_ROW
inline constexpr int dtype_count = static_cast<int>(dtype_specs.size());

/// The row of an element type.
constexpr dtype_spec spec_of(dtype type) { return dtype_specs[static_cast<std::size_t>(type)]; }

/// The i-th element type, 0 <= i < dtype_count.
constexpr dtype dtype_at(int i) { return static_cast<dtype>(i); }

/// The name of the element type in .safetensors files and in messages.
constexpr std::string_view name(dtype type) { return spec_of(type).name; }

/// The samebits format of the elements; nothing for integers, booleans and complex numbers.
constexpr std::optional<format_id> format_of(dtype type) { return spec_of(type).format; }

/// Bytes of one element after reading. Elements of less than a byte are unpacked to one byte each.
constexpr int code_bytes(dtype type) {
  const int bits = spec_of(type).bits;
  return bits < 8 ? 1 : bits / 8;
}

/// The element type with this name in a .safetensors header, or nothing.
constexpr std::optional<dtype> find_safetensors_dtype(std::string_view text) {
  for (int i = 0; i < dtype_count; ++i) {
    if (dtype_at(i) != dtype::c128 && text == name(dtype_at(i))) return dtype_at(i);
  }
  return std::nullopt;
}

/// The element type with this kind and size in a .npy descr ("f4"), or nothing.
constexpr std::optional<dtype> find_npy_dtype(std::string_view kind_and_size) {
  for (int i = 0; i < dtype_count; ++i) {
    const std::string_view npy = spec_of(dtype_at(i)).npy;
    if (!npy.empty() && kind_and_size == npy) return dtype_at(i);
  }
  return std::nullopt;
}

}  // namespace samebits::tensor_file
