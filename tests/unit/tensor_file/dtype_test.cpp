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
    EXPECT_EQ(format_of(type), find_format(name(type))) << name(type);
    if (spec.format) {
      EXPECT_EQ(code_bytes(type), storage_bytes(*spec.format)) << name(type);
    }
  }
  EXPECT_EQ(find_npy_dtype(""), std::nullopt);
}

}  // namespace
}  // namespace samebits::tensor_file::testing
