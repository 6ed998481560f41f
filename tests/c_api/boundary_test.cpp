// The boundary of the C interface: versions, lists, refusals of arguments and of option texts.
#include <cstdint>
#include <vector>

#include "c_api/in_c.hpp"
#include "support/refusal.hpp"

namespace samebits::in_c {
namespace {

TEST(CBoundary, Versions) {
  EXPECT_EQ(samebits_interface(), SAMEBITS_C_INTERFACE);
  EXPECT_EQ(samebits_version(),
            10000 * SAMEBITS_VERSION_MAJOR + 100 * SAMEBITS_VERSION_MINOR + SAMEBITS_VERSION_PATCH);
}

TEST(CBoundary, ListsOfBackendsAndFormats) {
  const char *text = nullptr, *why = nullptr;
  std::int32_t number = -1, count = 0;
  for (; samebits_format(count, &text, &number) == SAMEBITS_OK; ++count) {
    EXPECT_EQ(text, name(format_at(count)));
    EXPECT_EQ(number, storage_bytes(format_at(count)));
  }
  EXPECT_EQ(count, format_count);
  EXPECT_REFUSED(samebits_format(13, &text, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 "i: must be in 0 .. 12, got 13");
  EXPECT_EQ(samebits_format(-1, nullptr, nullptr), SAMEBITS_INVALID_ARGUMENT);
  const std::vector<backend_info> all = compiled_backends();
  // This program has no CUDA backends, the library may have some behind the others.
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_OK(samebits_backend(static_cast<std::int32_t>(i), &text, &why, &number));
    EXPECT_EQ(text, all[i].name);
    EXPECT_EQ(why, all[i].why_unsupported);
    EXPECT_EQ(number, static_cast<std::int32_t>(all[i].space));
  }
}

/// Expects samebits_convert() to refuse an option text.
void expect_refused(const char* options, const char* message) {
  matrix in(format_id::fp32, 1, 1), out(format_id::fp32, 1, 1);
  in.bytes[0] = 1;
  const samebits_array x = in.c(), y = out.c();
  EXPECT_REFUSED(samebits_convert(&x, &y, options, nullptr), SAMEBITS_INVALID_ARGUMENT, message);
  EXPECT_EQ(out.bytes[0], 0) << options;
}

TEST(CBoundary, OptionTextsThatAreRefused) {
  expect_refused("overflow=sat",
                 "overflow: must be one of ieee, saturate, saturate_finite, got 'sat'");
  expect_refused("overflow=", "overflow: must be one of ieee, saturate, saturate_finite, got ''");
  expect_refused("round=upward",
                 "'round' is not an option; there are: rounding, overflow, nan, seed, "
                 "random_stream, offset, pitch, random_bits");
  expect_refused("saturate",
                 "options: must be words NAME=VALUE with spaces between, got 'saturate'");
  expect_refused("seed=1,nan=canonical", "seed: must be an integer >= 0, got '1,nan=canonical'");
  expect_refused("=1", "options: must be words NAME=VALUE with spaces between, got '=1'");
  expect_refused("seed=1 seed=1", "options: name seed only once");
  expect_refused("seed=-1", "seed: must be an integer >= 0, got '-1'");
  expect_refused("random_bits=1.5", "random_bits: must be an integer, got '1.5'");
}

TEST(CBoundary, OptionsOfQuantizersAndProductsThatAreRefused) {
  matrix m = number_matrix(format_id::fp32, 2, 2);
  const samebits_array x = m.c();
  std::int64_t rows = -1;
  const auto refused = [&](const char* options, const char* message) {
    EXPECT_REFUSED(samebits_scales_shape(2, 2, options, &rows, nullptr), SAMEBITS_INVALID_ARGUMENT,
                   message);
    EXPECT_EQ(rows, -1);
  };
  refused("tile=128", "tile: must be ROWSxCOLS, such as 1x128, got '128'");
  refused("tile=1x", "tile: must be ROWSxCOLS, such as 1x128, got '1x'");
  refused("eps=small", "eps: must be a number, got 'small'");
  refused("recipe=MXFP8_TE tile=1x32",
          "options: recipe must stand alone, because it sets all others");
  EXPECT_EQ(samebits_scales_shape(2, 2, "recipe=NONE", nullptr, nullptr),
            SAMEBITS_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(samebits_last_error()).find("recipe: must be one of TE_BLOCK_1D, "), 0u);
  EXPECT_REFUSED(samebits_matmul(&x, nullptr, &x, nullptr, nullptr, &x, "", nullptr),
                 SAMEBITS_INVALID_ARGUMENT,
                 "options: must name the accumulation, such as sum=exact");
  EXPECT_EQ(samebits_matmul(&x, nullptr, &x, nullptr, nullptr, &x, "sum=exact", nullptr),
            SAMEBITS_INVALID_ARGUMENT);  // d overlaps a
}

TEST(CBoundary, ArraysThatAreRefused) {
  matrix in(format_id::fp32, 2, 3), out(format_id::bf16, 3, 2);
  samebits_array x = in.c(), y = out.c();
  const std::string refusal = support::refusal_of([&] { convert(in.cpp(), out.cpp()); });
  EXPECT_FALSE(refusal.empty());
  EXPECT_REFUSED(samebits_convert(&x, &y, nullptr, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 refusal.c_str());
  EXPECT_REFUSED(samebits_convert(nullptr, &y, nullptr, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 "in: must not be null");
  x.format = "fp23";
  EXPECT_REFUSED(samebits_convert(&x, &y, nullptr, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 "in.format: must be one of fp64, fp32, tf32, fp16, bf16, e4m3, e5m2, e3m2, e2m3, "
                 "e2m1, e4m3fnuz, e5m2fnuz, e8m0, got 'fp23'");
  x.format = nullptr;
  EXPECT_REFUSED(samebits_convert(&x, &y, nullptr, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 "in.format: must not be null");
  x = in.c();
  y.on_device = 7;
  EXPECT_REFUSED(samebits_convert(&x, &y, nullptr, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 "out.on_device: must be 0 or 1, got 7");
  y = in.c();
  const samebits_executor unknown = {"gpu", 1, nullptr}, threads = {nullptr, -1, nullptr};
  EXPECT_EQ(samebits_convert(&x, &y, nullptr, &unknown), SAMEBITS_INVALID_ARGUMENT);
  EXPECT_EQ(samebits_convert(&x, &y, nullptr, &threads), SAMEBITS_INVALID_ARGUMENT);
  EXPECT_EQ(samebits_evaluate(nullptr, nullptr, &x, &y, nullptr, nullptr),
            SAMEBITS_INVALID_ARGUMENT);
}

TEST(CBoundary, MemoryThatCannotBeAllocated) {
  matrix one = number_matrix(format_id::fp32, 1, 1), out(format_id::fp32, 1, 1);
  samebits_array a = one.c(), b = one.c();
  a.cols = b.rows = std::int64_t{1} << 50;  // one element, repeated
  a.col_stride = b.row_stride = 0;
  const samebits_array d = out.c();
  EXPECT_REFUSED(samebits_matmul(&a, nullptr, &b, nullptr, nullptr, &d, "sum=exact", nullptr),
                 SAMEBITS_NO_MEMORY, "out of memory");
}

}  // namespace
}  // namespace samebits::in_c
