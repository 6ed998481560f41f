// The element types of PyTorch: dtypes and classes of storages.
//
// Source: PyTorch 2.11, torch/storage.py, _dtype_to_storage_type_map; torch/_utils.py, _element_size.
#pragma once

#include "tensor_file/common.hpp"
#include "tensor_file/dtype.hpp"

namespace samebits::tensor_file {

struct torch_type {
  std::string_view name;               ///< of the dtype, behind "torch."
  std::string_view storage;            ///< the class of its storages; empty: UntypedStorage
  std::uint64_t bytes;                 ///< of one element
  std::optional<dtype> elements = {};  ///< nothing: not read
};

inline constexpr torch_type torch_types[] = {
    {"float32", "FloatStorage", 4, dtype::f32},
    {"float64", "DoubleStorage", 8, dtype::f64},
    {"float16", "HalfStorage", 2, dtype::f16},
    {"bfloat16", "BFloat16Storage", 2, dtype::bf16},
    {"int64", "LongStorage", 8, dtype::i64},
    {"int32", "IntStorage", 4, dtype::i32},
    {"int16", "ShortStorage", 2, dtype::i16},
    {"int8", "CharStorage", 1, dtype::i8},
    {"uint8", "ByteStorage", 1, dtype::u8},
    {"uint16", "", 2, dtype::u16},
    {"uint32", "", 4, dtype::u32},
    {"uint64", "", 8, dtype::u64},
    {"bool", "BoolStorage", 1, dtype::boolean},
    {"complex64", "ComplexFloatStorage", 8, dtype::c64},
    {"complex128", "ComplexDoubleStorage", 16, dtype::c128},
    {"complex32", "", 4},
    {"float8_e4m3fn", "", 1, dtype::f8_e4m3},
    {"float8_e5m2", "", 1, dtype::f8_e5m2},
    {"float8_e4m3fnuz", "", 1, dtype::f8_e4m3fnuz},
    {"float8_e5m2fnuz", "", 1, dtype::f8_e5m2fnuz},
    {"float8_e8m0fnu", "", 1, dtype::f8_e8m0},
    {"float4_e2m1fn_x2", "", 1},
    {"qint8", "QInt8Storage", 1},
    {"quint8", "QUInt8Storage", 1},
    {"qint32", "QInt32Storage", 4},
    {"quint4x2", "QUInt4x2Storage", 1},
    {"quint2x4", "QUInt2x4Storage", 1},
};

/// The row of a dtype, or null.
constexpr const torch_type* find_torch_type(std::string_view name) {
  for (const torch_type& type : torch_types) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

/// The row of a class of typed storages, or null.
constexpr const torch_type* find_torch_storage(std::string_view name) {
  for (const torch_type& type : torch_types) {
    if (!type.storage.empty() && type.storage == name) return &type;
  }
  return nullptr;
}

}  // namespace samebits::tensor_file
