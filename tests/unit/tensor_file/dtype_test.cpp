// The dtype rows: names, sizes and formats.
#include "tensor_file/dtype.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace samebits::tensor_file::testing {
namespace {

TEST(Dtype, RowsAreConsistent) {
  std::set<std::string_view> names;
  for (int i = 0; i < dtype_count; ++i) {
    const dtype type = dtype_at(i);
    const dtype_spec spec = spec_of(type);
    EXPECT_TRUE(names.insert(name(type)).second) << name(type);
    EXPECT_EQ(find_safetensors_dtype(name(type)).has_value(), type != dtype::c128);
    if (type != dtype::c128) {
      EXPECT_EQ(find_safetensors_dtype(name(type)), type);
    }
    if (*spec.npy != '\0') {
      EXPECT_EQ(find_npy_dtype(spec.npy), type);
    }
    EXPECT_EQ(code_bytes(type), (spec.bits + 7) / 8);
    EXPECT_EQ(code_bytes(type) % spec.component_bytes, 0);
    if (spec.format) {
      EXPECT_EQ(code_bytes(type), storage_bytes(*spec.format)) << name(type);
    }
  }
  EXPECT_EQ(find_npy_dtype(""), std::nullopt);
}

TEST(Dtype, FormatsOfFloatingPointTypes) {
  EXPECT_EQ(format_of(dtype::f64), format_id::fp64);
  EXPECT_EQ(format_of(dtype::f32), format_id::fp32);
  EXPECT_EQ(format_of(dtype::f16), format_id::fp16);
  EXPECT_EQ(format_of(dtype::bf16), format_id::bf16);
  EXPECT_EQ(format_of(dtype::f8_e4m3), format_id::e4m3);
  EXPECT_EQ(format_of(dtype::f8_e5m2), format_id::e5m2);
  EXPECT_EQ(format_of(dtype::f8_e8m0), format_id::e8m0);
  EXPECT_EQ(format_of(dtype::f8_e4m3fnuz), format_id::e4m3fnuz);
  EXPECT_EQ(format_of(dtype::f8_e5m2fnuz), format_id::e5m2fnuz);
  EXPECT_EQ(format_of(dtype::f6_e2m3), format_id::e2m3);
  EXPECT_EQ(format_of(dtype::f6_e3m2), format_id::e3m2);
  EXPECT_EQ(format_of(dtype::f4), format_id::e2m1);
  EXPECT_EQ(format_of(dtype::u16), std::nullopt);
  EXPECT_EQ(format_of(dtype::c64), std::nullopt);
}

}  // namespace
}  // namespace samebits::tensor_file::testing
