// Scale layouts: against enumerations in memory order, hand-worked coordinates, round trips,
// refusals.
#include "samebits/scale_layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "samebits/error.hpp"
#include "samebits/types.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

constexpr scale_layout layouts[] = {scale_layout::row_major,     scale_layout::column_major,
                                    scale_layout::row_padded,    scale_layout::packed_ue8m0,
                                    scale_layout::padded_128x4,  scale_layout::padded_4x128,
                                    scale_layout::swizzled_128x4};
static_assert(std::size(layouts) == enum_count<scale_layout>);

// cuBLAS documentation, "1D block scaling factors layout", by hand: 32 rows lie 16 bytes apart, the
// next 32 rows 4 bytes behind; tiles of 128 x 4 follow one another along the columns first.
static_assert(layout_offset(scale_layout::swizzled_128x4, 200, 9, 0, 1) == 1);
static_assert(layout_offset(scale_layout::swizzled_128x4, 200, 9, 1, 0) == 16);
static_assert(layout_offset(scale_layout::swizzled_128x4, 200, 9, 32, 0) == 4);
static_assert(layout_offset(scale_layout::swizzled_128x4, 200, 9, 127, 3) == 511);
static_assert(layout_offset(scale_layout::swizzled_128x4, 200, 9, 0, 4) == 512);
static_assert(layout_offset(scale_layout::swizzled_128x4, 200, 9, 128, 0) == 3 * 512);
static_assert(layout_bytes(scale_layout::swizzled_128x4, 200, 9) == 256 * 12);
// DeepGEMM: the stride of packed words is the rows up to 4, four columns to a word.
static_assert(layout_offset(scale_layout::packed_ue8m0, 5, 6, 0, 3) == 3);
static_assert(layout_offset(scale_layout::packed_ue8m0, 5, 6, 1, 0) == 4);
static_assert(layout_offset(scale_layout::packed_ue8m0, 5, 6, 0, 4) == 8 * 4);
static_assert(layout_bytes(scale_layout::packed_ue8m0, 5, 6) == 2 * 8 * 4);
// TransformerEngine: (ceil(K / 128), rows up to 4) and (ceil(rows / 128), ceil(K / 128) up to 4).
static_assert(layout_offset(scale_layout::column_major, 5, 3, 0, 2) == 2 * 8 * 4);
static_assert(layout_offset(scale_layout::row_padded, 5, 3, 2, 0) == 2 * 4 * 4);
static_assert(layout_bytes(scale_layout::padded_4x128, 3, 130) == 4 * 256);
static_assert(layout_bytes(scale_layout::padded_128x4, 0, 7) == 0);

struct coordinate {
  std::int64_t row, col;
};

/// The coordinates of a layout in the order in which they lie in memory, by loops over the axes
/// that the header's table names, outermost first: no offset is computed.
std::vector<coordinate> in_memory_order(scale_layout layout, std::int64_t rows, std::int64_t cols) {
  const auto up = [](std::int64_t n, std::int64_t to) {
    while (n % to != 0) ++n;
    return n;
  };
  std::vector<coordinate> coordinates;
  const auto rows_first = [&](std::int64_t r, std::int64_t c) {
    for (std::int64_t i = 0; i < r; ++i) {
      for (std::int64_t k = 0; k < c; ++k) coordinates.push_back({i, k});
    }
  };
  switch (layout) {
    case scale_layout::row_major: rows_first(rows, cols); break;
    case scale_layout::row_padded: rows_first(rows, up(cols, 4)); break;
    case scale_layout::padded_128x4: rows_first(up(rows, 128), up(cols, 4)); break;
    case scale_layout::padded_4x128: rows_first(up(rows, 4), up(cols, 128)); break;
    case scale_layout::column_major:
      for (std::int64_t k = 0; k < cols; ++k) {
        for (std::int64_t i = 0; i < up(rows, 4); ++i) coordinates.push_back({i, k});
      }
      break;
    case scale_layout::packed_ue8m0:
      for (std::int64_t word = 0; word < up(cols, 4); word += 4) {
        for (std::int64_t i = 0; i < up(rows, 4); ++i) {
          for (std::int64_t byte = 0; byte < 4; ++byte) coordinates.push_back({i, word + byte});
        }
      }
      break;
    case scale_layout::swizzled_128x4:
      for (std::int64_t i = 0; i < up(rows, 128); i += 128) {
        for (std::int64_t k = 0; k < up(cols, 4); k += 4) {
          for (std::int64_t line = 0; line < 32; ++line) {
            for (std::int64_t quarter = 0; quarter < 4; ++quarter) {
              for (std::int64_t c = 0; c < 4; ++c)
                coordinates.push_back({i + quarter * 32 + line, k + c});
            }
          }
        }
      }
      break;
  }
  return coordinates;
}

/// Any power of two, NaN among them, by row and column.
std::uint32_t scale_at(std::int64_t row, std::int64_t col) {
  const auto e = static_cast<std::uint32_t>(row * 31 + col * 7) % 256;
  return e == 0 ? 0x00400000u : e == 255 ? 0x7FFFFFFFu : e << 23;
}

TEST(ScaleLayout, LiesInMemoryAsTheAxesSay) {
  for (const scale_layout layout : layouts) {
    for (const auto& [rows, cols] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {1, 1}, {5, 6}, {128, 4}, {129, 5}, {300, 33}, {3, 131}, {0, 4}, {7, 0}}) {
      const std::vector<coordinate> coordinates = in_memory_order(layout, rows, cols);
      const auto width = static_cast<std::size_t>(storage_bytes(layout_format(layout)));
      if (rows != 0 && cols != 0) {
        ASSERT_EQ(layout_bytes(layout, rows, cols),
                  static_cast<std::int64_t>(coordinates.size() * width));
      }
      std::vector<float> values;
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < cols; ++c) {
          values.push_back(std::bit_cast<float>(scale_at(r, c)));
        }
      }
      for (const scale_padding padding : {scale_padding::zero, scale_padding::one}) {
        std::vector<std::byte> out(static_cast<std::size_t>(layout_bytes(layout, rows, cols)),
                                   std::byte{0x55});
        const auto report =
            arrange_scales(view_of(values.data(), rows, cols), layout, out, {.padding = padding});
        EXPECT_EQ(report, (scale_layout_report{.scales = values.size()}));
        for (std::size_t i = 0; i * width < out.size(); ++i) {
          const bool inside = coordinates[i].row < rows && coordinates[i].col < cols;
          const std::uint32_t pad = padding == scale_padding::one ? 0x3F800000u : 0u;
          const std::uint32_t bits =
              inside ? scale_at(coordinates[i].row, coordinates[i].col) : pad;
          const std::uint32_t expected = width == 4 ? bits : bits >> 23;
          std::uint32_t got = 0;
          std::memcpy(&got, out.data() + i * width, width);
          ASSERT_EQ(got, expected)
              << name(layout) << " unit " << i << " of " << rows << "x" << cols;
        }
        std::vector<float> back(values.size());
        restore_scales(out, layout, view_of(back.data(), rows, cols));
        const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
        EXPECT_TRUE(std::ranges::equal(back, values, {}, bits, bits)) << name(layout);
      }
    }
  }
}

TEST(ScaleLayout, BytesAndViewsWithGapsGoThereAndBack) {
  std::array<std::uint8_t, 20> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 13);
  // [3, 2], rows 5 apart, columns 2 apart
  const const_matrix_view view{bytes.data(), format_id::e8m0, 3, 2, 5, 2};
  for (const scale_layout layout : layouts) {
    std::vector<std::byte> out(static_cast<std::size_t>(layout_bytes(layout, 3, 2)));
    arrange_scales(view, layout, out);
    std::array<std::uint8_t, 20> back{};
    restore_scales(out, layout, {back.data(), format_id::e8m0, 3, 2, 5, 2});
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const bool is_scale = i < 13 && (i % 5 == 0 || i % 5 == 2);
      EXPECT_EQ(back[i], is_scale ? bytes[i] : 0) << name(layout) << i;
    }
  }
}

TEST(ScaleLayout, WhatNoByteHoldsIsRefusedOrCounted) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {3.0f, 0x1.000002p0f, 0.0f, -0.0f, -2.0f, inf, 0x1p-128f, 0x1.8p-127f}) {
    std::array<float, 6> scales = {1, 2, 4, 8, bad, bad};
    std::array<std::byte, 16> out;
    out.fill(std::byte{0x55});
    for (const char* part : {"scales: 2 are no powers of two", "[2, 0]"}) {
      support::expect_refusal(part, [&] {
        arrange_scales(view_of(scales.data(), 3, 2), scale_layout::packed_ue8m0, out);
      });
    }
    for (const std::byte b : out) EXPECT_EQ(b, std::byte{0x55});
    const auto report = arrange_scales(view_of(scales.data(), 3, 2), scale_layout::packed_ue8m0,
                                       out, {.unpackable = unpackable::count});
    EXPECT_EQ(report, (scale_layout_report{6, 2, 2, 0}));
    EXPECT_EQ(out[0], std::byte{127});
    EXPECT_EQ(out[8], std::byte{0xFF});
    EXPECT_EQ(out[9], std::byte{0xFF});
  }
  // fp32 layouts take any number, and are held to it on the way to bytes.
  std::array<float, 2> scales = {3.0f, 1.0f};
  std::array<std::byte, 8> out;
  EXPECT_NO_THROW(arrange_scales(view_of(scales.data(), 1, 2), scale_layout::row_major, out));
  std::array<std::uint8_t, 2> bytes{};
  const matrix_view to{bytes.data(), format_id::e8m0, 1, 2, 2, 1};
  EXPECT_THROW(restore_scales(out, scale_layout::row_major, to), invalid_argument);
  restore_scales(out, scale_layout::row_major, to, {.unpackable = unpackable::count});
  EXPECT_EQ(bytes[0], 0xFF);
  EXPECT_EQ(bytes[1], 127);
}

TEST(ScaleLayout, RefusedArguments) {
  std::array<float, 4> scales = {1, 2, 4, 8};
  std::array<std::byte, 512> out;
  const auto expect_refused = [&](const const_matrix_view& v, std::span<std::byte> to,
                                  const std::string& message, scale_layout layout) {
    const std::string text = support::refusal_of([&] { arrange_scales(v, layout, to); });
    EXPECT_EQ(text.substr(0, message.size()), message);
  };
  const const_matrix_view v = view_of(scales.data(), 2, 2);
  const scale_layout swizzled = scale_layout::swizzled_128x4;
  expect_refused(v, std::span(out).first(511), "out: must have 512 bytes for [2, 2]", swizzled);
  expect_refused(on_device(v), out, "scales: must lie in host memory", swizzled);
  const_matrix_view wrong = v;
  wrong.format = format_id::fp16;
  expect_refused(wrong, out, "scales: format must be one of fp32, e8m0, e4m3, got fp16", swizzled);
  expect_refused(v, out, "layout: must be a value of samebits::scale_layout, got 7",
                 static_cast<scale_layout>(7));
  expect_refused(v, std::as_writable_bytes(std::span(scales)), "out: overlaps scales",
                 scale_layout::row_major);
  // what is written lies apart from itself; what is read need not
  matrix_view repeated = view_of(scales.data(), 2, 2);
  repeated.row_stride = 0;
  arrange_scales(repeated, scale_layout::row_major, std::span(out).first(16));
  EXPECT_THROW(restore_scales(std::span(out).first(16), scale_layout::row_major, repeated),
               invalid_argument);
}

}  // namespace
}  // namespace samebits
