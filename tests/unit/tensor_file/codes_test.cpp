// read_codes, view_codes and data_bytes: bounds, views, and contradictory descriptions.
#include "tensor_file/codes.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support.hpp"

namespace samebits::tensor_file::testing {
namespace {

// Six 16-bit elements after 8 other bytes, aligned.
struct sample_file {
  alignas(16) std::array<std::byte, 20> bytes{};
  tensor_info info;

  sample_file() {
    std::memcpy(bytes.data(), "........abcdefghijkl", bytes.size());
    info.type = dtype::f16;
    info.shape = {2, 3};
    info.offset = 8;
    info.bytes = 12;
    info.count = 6;
  }

  std::string read(std::uint64_t first, std::uint64_t count) const {
    std::string out(count * 2, '\0');
    read_codes(bytes, info, first, count, reinterpret_cast<std::byte*>(out.data()));
    return out;
  }
};

TEST(Codes, ReadsAnyPart) {
  sample_file file;
  EXPECT_EQ(file.read(0, 6), "abcdefghijkl");
  EXPECT_EQ(file.read(2, 3), "efghij");
  EXPECT_EQ(file.read(6, 0), "");
  file.info.bytes_order = byte_order::big;
  EXPECT_EQ(file.read(2, 3), "fehgji");
  file.info.strides = {1, 2};  // columns ab cd, ef gh, ij kl
  EXPECT_EQ(file.read(0, 6), "bafejidchglk");
  EXPECT_EQ(file.read(1, 3), "fejidc");
  file.info.bytes_order = byte_order::little;
  EXPECT_EQ(file.read(0, 6), "abefijcdghkl");
}

// Views of another tensor: every second element, one element for a whole row, rows that overlap.
TEST(Codes, ReadsAnyStrides) {
  sample_file file;
  const auto expect = [&](std::vector<std::uint64_t> shape, std::vector<std::uint64_t> strides,
                          std::string_view codes) {
    file.info.shape = std::move(shape);
    file.info.strides = std::move(strides);
    file.info.bytes = codes.size();
    file.info.count = codes.size() / 2;
    EXPECT_EQ(file.read(0, file.info.count), codes);
    EXPECT_FALSE(view_codes(file.bytes, file.info).has_value());
  };
  expect({2, 2}, {3, 2}, "abefghkl");
  expect({2, 3}, {1, 0}, "abababcdcdcd");
  expect({3, 2, 2}, {1, 2, 1}, "abcdefghcdefghijefghijkl");
  expect({2, 0}, {1ull << 63, 1}, "");
  EXPECT_EQ(data_bytes(file.bytes, file.info).size(), 0u);
  expect({3}, {2}, "abefij");
  EXPECT_EQ(data_bytes(file.bytes, file.info).size(), 10u);
}

// A complex number swaps its two halves each by itself.
TEST(Codes, SwapsComplexNumbersByComponent) {
  sample_file file;
  file.info.type = dtype::c64;
  file.info.shape = {1};
  file.info.count = 1;
  file.info.bytes = 8;
  file.info.bytes_order = byte_order::big;
  std::string out(8, '\0');
  read_codes(file.bytes, file.info, 0, 1, reinterpret_cast<std::byte*>(out.data()));
  EXPECT_EQ(out, "dcbahgfe");
}

TEST(Codes, NothingToReadNeedsNoMemory) {
  const sample_file file;
  EXPECT_NO_THROW(read_codes(file.bytes, file.info, 3, 0, nullptr));
}

TEST(Codes, RefusesElementsOutsideTheTensor) {
  const sample_file file;
  EXPECT_THROW(file.read(0, 7), std::out_of_range);
  EXPECT_THROW(file.read(6, 1), std::out_of_range);
  EXPECT_THROW(file.read(7, 0), std::out_of_range);
  EXPECT_THROW(read_codes(file.bytes, file.info, ~0ull, 2, nullptr), std::out_of_range);
  EXPECT_THROW(read_codes(file.bytes, file.info, 2, ~0ull, nullptr), std::out_of_range);
}

TEST(Codes, RefusesBytesOutsideTheFile) {
  sample_file file;
  file.info.offset = 9;
  EXPECT_THROW(file.read(0, 1), std::out_of_range);
  EXPECT_THROW(data_bytes(file.bytes, file.info), std::out_of_range);
  EXPECT_THROW(view_codes(file.bytes, file.info), std::out_of_range);
  file.info.offset = ~0ull;
  EXPECT_THROW(file.read(0, 1), std::out_of_range);
}

TEST(Codes, RefusesContradictions) {
  const sample_file good;
  sample_file file;
  file.info.shape = {2, 4};
  EXPECT_THROW(file.read(0, 1), std::out_of_range);
  file = good;
  file.info.bytes = 11;
  EXPECT_THROW(file.read(0, 1), std::out_of_range);
  file = good;
  file.info.type = dtype::f32;
  EXPECT_THROW(view_codes(file.bytes, file.info), std::out_of_range);
  file = good;
  file.info.shape.assign(max_rank + 1, 1);
  file.info.count = 1;
  file.info.bytes = 2;
  EXPECT_THROW(file.read(0, 1), std::out_of_range);
  file = good;
  file.info.type = dtype::f4;
  file.info.shape = {4, 6};
  file.info.count = 24;
  file.info.strides = {1, 4};
  EXPECT_THROW(file.read(0, 1), std::out_of_range);
  for (const auto& strides :
       {std::vector<std::uint64_t>{1}, {1, 2, 3}, {1, 3}, {6, 1}, {~0ull, 2}, {~0ull, ~0ull}}) {
    file = good;
    file.info.strides = strides;
    EXPECT_THROW(file.read(0, 1), std::out_of_range);
    EXPECT_THROW(view_codes(file.bytes, file.info), std::out_of_range);
  }
  for (const block_layout blocks : {block_layout::q8_0, block_layout::q4_0}) {
    file = good;
    file.info.blocks = blocks;  // of fp16, and no whole block
    EXPECT_THROW(file.read(0, 1), std::out_of_range);
    file.info.type = dtype::f32;
    file.info.shape = {3};
    file.info.count = 3;
    EXPECT_THROW(file.read(0, 1), std::out_of_range);
    file.info.shape = {32};
    file.info.count = 32;
    file.info.bytes = 128;  // whole, but not in the file
    EXPECT_THROW(file.read(0, 1), std::out_of_range);
  }
  file = good;
  file.info.shape = {1ull << 63, 2};
  EXPECT_THROW(file.read(0, 1), file_error);
}

TEST(Codes, ViewsWhatNeedsNoConversion) {
  sample_file file;
  const auto view = view_codes(file.bytes, file.info);
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->data(), file.bytes.data() + 8);
  EXPECT_EQ(view->size(), 12u);
  file.info.strides = {1, 2};
  EXPECT_FALSE(view_codes(file.bytes, file.info).has_value());
  file.info.strides = {};
  file.info.shape = {6};
  EXPECT_TRUE(view_codes(file.bytes, file.info).has_value());
  file.info.bytes_order = byte_order::big;
  EXPECT_FALSE(view_codes(file.bytes, file.info).has_value());
}

TEST(Codes, ViewsOnlyWhatIsAligned) {
  sample_file file;
  file.info.shape = {5};
  file.info.count = 5;
  file.info.bytes = 10;
  file.info.offset = 9;
  EXPECT_FALSE(view_codes(file.bytes, file.info).has_value());
  file.info.type = dtype::u8;
  file.info.shape = {10};
  file.info.count = 10;
  EXPECT_TRUE(view_codes(file.bytes, file.info).has_value());
  file.info.type = dtype::f4;
  file.info.shape = {20};
  file.info.count = 20;
  EXPECT_FALSE(view_codes(file.bytes, file.info).has_value());
}

// read_codes() of what pack_codes() made gives the codes back, their unused bits cleared.
TEST(Codes, PacksWhatItUnpacks) {
  for (const dtype type : {dtype::f4, dtype::f6_e2m3, dtype::f6_e3m2, dtype::u8, dtype::bf16}) {
    const int bits = spec_of(type).bits;
    const auto mask = static_cast<std::uint8_t>(bits < 8 ? (1u << bits) - 1 : 0xff);
    std::string codes;
    for (unsigned i = 0; i < 256; ++i) codes += static_cast<char>(i * 37 + 11);
    const std::vector<std::byte> packed = pack_codes(type, bytes_of(codes));
    tensor_info info;
    info.type = type;
    info.count = codes.size() / static_cast<std::size_t>(code_bytes(type));
    info.shape = {info.count};
    info.bytes = packed.size();
    std::string back(codes.size(), '\0');
    read_codes(packed, info, 0, info.count, reinterpret_cast<std::byte*>(back.data()));
    for (char& c : codes) c = static_cast<char>(static_cast<std::uint8_t>(c) & mask);
    EXPECT_EQ(back, codes) << name(type);
  }
  expect_refused([] { static_cast<void>(pack_codes(dtype::f4, bytes_of("abc"))); },
                 error_kind::malformed, "3 elements of F4 do not fill whole bytes");
}

}  // namespace
}  // namespace samebits::tensor_file::testing
