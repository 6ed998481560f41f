// Packed codes: known bytes, every code at every place, round trips, refusals; scales in e4m3.
#include "samebits/packing.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "samebits/error.hpp"
#include "samebits/scale_layout.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

using bytes = std::vector<std::byte>;

bytes packed(format_id format, packing order, std::vector<std::uint8_t> codes, std::int64_t rows) {
  const auto cols = static_cast<std::int64_t>(codes.size()) / rows;
  bytes out(static_cast<std::size_t>(packed_bytes(format, rows, cols)), std::byte{0xA5});
  pack_codes(view_of_codes(format, codes.data(), rows, cols), order, out);
  return out;
}

bytes bytes_of(std::initializer_list<int> all) {
  bytes result;
  for (const int b : all) result.push_back(static_cast<std::byte>(b));
  return result;
}

TEST(Packing, KnownBytes) {
  using enum format_id;
  EXPECT_EQ(packed(e2m1, packing::low_first, {1, 2, 3}, 1), bytes_of({0x21, 0x03}));
  EXPECT_EQ(packed(e2m1, packing::high_first, {1, 2, 3}, 1), bytes_of({0x12, 0x30}));
  // each row begins at a byte; bits above the code are ignored
  EXPECT_EQ(packed(e2m1, packing::low_first, {0xF1, 2, 3, 4, 5, 6}, 2),
            bytes_of({0x21, 0x03, 0x54, 0x06}));
  // 100001 100010 100011 100100, the first lowest: 100100 100011 100010 100001
  EXPECT_EQ(packed(e2m3, packing::low_first, {0x21, 0x22, 0x23, 0x24}, 1),
            bytes_of({0xA1, 0x38, 0x92}));
  EXPECT_EQ(packed(e3m2, packing::high_first, {0x21, 0x22, 0x23, 0x24}, 1),
            bytes_of({0x86, 0x28, 0xE4}));
  EXPECT_EQ(packed(e3m2, packing::low_first, {0x3F}, 1), bytes_of({0x3F}));
  EXPECT_EQ(packed(e3m2, packing::high_first, {0x3F}, 1), bytes_of({0xFC}));
}

TEST(Packing, BitsOfEveryCodeLieWhereTheTableSays) {
  std::mt19937 engine(5);
  for (const format_id format : {format_id::e2m1, format_id::e2m3, format_id::e3m2}) {
    const int bits = code_bits(format);
    for (std::int64_t cols = 1; cols < 20; ++cols) {
      std::vector<std::uint8_t> codes(static_cast<std::size_t>(3 * cols));
      for (auto& code : codes) code = static_cast<std::uint8_t>(engine() % (1u << bits));
      for (const packing order : {packing::low_first, packing::high_first}) {
        bytes out = packed(format, order, codes, 3);
        const std::int64_t row_bits = 8 * packed_row_bytes(format, cols);
        for (std::int64_t i = 0; i < 3 * cols; ++i) {
          for (int b = 0; b < bits; ++b) {
            // bit streams from the lowest, or from the highest bit of the first byte
            const std::int64_t stream =
                i % cols * bits + (order == packing::low_first ? b : bits - 1 - b);
            const std::int64_t at = i / cols * row_bits + stream;
            const auto byte = std::to_integer<unsigned>(out[static_cast<std::size_t>(at / 8)]);
            const auto bit = order == packing::low_first ? at % 8 : 7 - at % 8;
            EXPECT_EQ(byte >> bit & 1u, codes[static_cast<std::size_t>(i)] >> b & 1u);
          }
        }
        std::vector<std::uint8_t> back(codes.size() + 3, 0xA5);
        unpack_codes(out, order, view_of_codes(format, back.data(), 3, cols));
        EXPECT_EQ(std::vector(back.begin(), back.end() - 3), codes);
        // by columns
        std::vector<std::uint8_t> turned(codes.size());
        matrix_view view = view_of_codes(format, turned.data(), 3, cols);
        view.row_stride = 1, view.col_stride = 3;
        unpack_codes(out, order, view);
        bytes again(out.size());
        pack_codes(view, order, again);
        EXPECT_EQ(again, out);
      }
    }
  }
}

TEST(Packing, Refusals) {
  std::array<std::uint8_t, 8> codes = {};
  bytes out(4);
  const auto refused = [&](const auto& call, const std::string& expected) {
    support::expect_refusal(expected, call);
  };
  const auto view = view_of_codes(format_id::e2m1, codes.data(), 1, 8);
  refused(
      [&] {
        pack_codes(view_of_codes(format_id::e4m3, codes.data(), 1, 8), packing::low_first, out);
      },
      "codes: format must be one of e2m1, e2m3, e3m2");
  refused([&] { pack_codes(view, packing::low_first, std::span(out).first(3)); },
          "must have 4 bytes");
  refused([&] { pack_codes(view, static_cast<packing>(2), out); }, "order: ");
  refused([&] { unpack_codes(std::as_bytes(std::span(codes)).first(4), packing::low_first, view); },
          "in: overlaps codes");
}

TEST(Packing, ScalesInE4m3KeepTheirBytes) {
  std::vector<std::uint8_t> scales(3 * 5);
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<std::uint8_t>(17 * i + 1);
  const auto view = view_of_codes(format_id::e4m3, scales.data(), 3, 5);
  for (const scale_layout layout :
       {scale_layout::padded_128x4, scale_layout::padded_4x128, scale_layout::swizzled_128x4}) {
    bytes out(static_cast<std::size_t>(layout_bytes(layout, 3, 5)));
    arrange_scales(view, layout, out, {.padding = scale_padding::one});
    for (std::int64_t row = 0; row < padded_shape(layout, 3, 5).rows; ++row) {
      for (std::int64_t col = 0; col < padded_shape(layout, 3, 5).cols; ++col) {
        const auto at = static_cast<std::size_t>(layout_offset(layout, 3, 5, row, col));
        const int expected =
            row < 3 && col < 5 ? scales[static_cast<std::size_t>(5 * row + col)] : 0x38;  // 1
        EXPECT_EQ(std::to_integer<int>(out[at]), expected);
      }
    }
    std::vector<std::uint8_t> back(scales.size());
    restore_scales(out, layout, view_of_codes(format_id::e4m3, back.data(), 3, 5));
    EXPECT_EQ(back, scales);
  }
  bytes out(60);
  EXPECT_THROW(arrange_scales(view, scale_layout::row_major, out), invalid_argument);
}

}  // namespace
}  // namespace samebits
