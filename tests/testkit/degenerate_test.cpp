// Degenerate kernels, such as one that writes zeros: both checks of the kit must find each of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "planted_kernels.hpp"
#include "samebits/recipe.hpp"
#include "samebits/testkit/quantize.hpp"
#include "support/effort.hpp"

namespace samebits::testkit {
namespace {

using enum format_id;
const int seeds = std::min(support::planted_seeds(), 2);

/// A right kernel whose results are changed.
struct degenerate {
  const char* name;
  std::function<void(const codes& in, results& out)> change;
};
std::ostream& operator<<(std::ostream& out, const degenerate& d) { return out << d.name; }

template <class Test>
std::string name_of(const ::testing::TestParamInfo<Test>& info) {
  return info.param.name;
}

/// An index that depends on all codes.
std::size_t some_index(const codes& in) {
  return std::accumulate(in.begin(), in.end(), std::uint64_t{0}) * 0x9E3779B97F4A7C15u % in.size();
}

/// Changes the elements for which `which(in, i)` is true.
template <class Which>
std::function<void(const codes&, results&)> where(Which which,
                                                  std::optional<std::uint64_t> to = {}) {
  return [=](const codes& in, results& out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (which(in, i)) out[i] = to;
    }
  };
}

template <class Which>
void add_left_out(std::vector<degenerate>& all, const char* zeros, const char* unwritten,
                  Which which) {
  all.push_back({zeros, where(which, 0)});
  all.push_back({unwritten, where(which)});
}

std::vector<degenerate> kernels() {
  std::vector<degenerate> all;
  add_left_out(all, "zeros", "untouched", [](const codes&, std::size_t) { return true; });
  add_left_out(all, "first_is_zero", "first_untouched",
               [](const codes&, std::size_t i) { return i == 0; });
  add_left_out(all, "last_is_zero", "last_untouched",
               [](const codes& in, std::size_t i) { return i + 1 == in.size(); });
  add_left_out(all, "one_is_zero", "one_untouched",
               [](const codes& in, std::size_t i) { return i == some_index(in); });
  add_left_out(all, "element_100_is_zero", "element_100_untouched",
               [](const codes&, std::size_t i) { return i == 100; });
  add_left_out(all, "tail_of_4_is_zero", "tail_of_4_untouched",
               [](const codes& in, std::size_t i) { return i >= in.size() / 4 * 4; });
  add_left_out(all, "last_tile_is_zero", "last_tile_untouched", [](const codes& in, std::size_t i) {
    return i >= 256 && i / 256 == (in.size() - 1) / 256;
  });
  all.push_back({"constant", [](const codes&, results& out) {
                   std::fill(out.begin(), out.end(), out.empty() ? std::nullopt : out[0]);
                 }});
  all.push_back({"input", [](const codes& in, results& out) { out.assign(in.begin(), in.end()); }});
  all.push_back({"eight_repeated", [](const codes&, results& out) {
                   if (out.size() >= 16) std::copy_n(out.begin(), 8, out.begin() + 8);
                 }});
  for (const std::uint64_t fill : {0xA5u, 0x5Au}) {
    all.push_back({fill == 0xA5 ? "code_A5_untouched" : "code_5A_untouched",
                   [fill](const codes&, results& out) {
                     for (auto& code : out) {
                       if (code == fill || code == fill * 0x0101) code.reset();
                     }
                   }});
  }
  return all;
}

class DegenerateConversion : public ::testing::TestWithParam<degenerate> {};

TEST_P(DegenerateConversion, IsFoundWithEverySeed) {
  for (const conversion_under_test& c : {pair(fp32, e4m3, saturating), pair(bf16, bf16)}) {
    if (c.from == c.to && GetParam().name == std::string("input")) continue;  // is right
    const raw_function kernel = kernel_of(c, [&](const codes& in) {
      results out;
      for (std::size_t i = 0; i < in.size(); ++i) out.emplace_back(right(c, in, i));
      if (!in.empty()) GetParam().change(in, out);
      return out;
    });
    for (int seed = 1; seed <= seeds; ++seed) {
      const check_result result = check_raw(
          c, kernel, {.batches = 4, .batch_size = 1000, .seed = static_cast<std::uint64_t>(seed)});
      ASSERT_TRUE(result.failure()) << name(c.from) << " " << seed << ": " << result.message();
      RecordProperty("cases", std::to_string(result.compared()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kit, DegenerateConversion, ::testing::ValuesIn(kernels()),
                         name_of<degenerate>);

/// The arrays of a call of a quantizer with tiles of 1 x 128, after a right quantizer.
struct quantized {
  std::span<const float> in;
  std::size_t rows;
  std::size_t cols;
  std::span<std::uint8_t> codes;
  std::span<float> scales;
};
struct degenerate_quantizer {
  const char* name;
  std::function<void(const quantized&)> change;  ///< none: nothing is written
};
std::ostream& operator<<(std::ostream& out, const degenerate_quantizer& d) { return out << d.name; }

/// Sets the codes to 0 for which `which(q, i)` is true.
template <class Which>
std::function<void(const quantized&)> no_codes(Which which) {
  return [which](const quantized& q) {
    for (std::size_t i = 0; i < q.codes.size(); ++i) {
      if (which(q, i)) q.codes[i] = 0;
    }
  };
}

/// Changes each scale: change(q, i).
template <class Change>
std::function<void(const quantized&)> scales(Change change) {
  return [change](const quantized& q) {
    for (std::size_t i = 0; i < q.scales.size(); ++i) q.scales[i] = change(q, i);
  };
}

std::vector<degenerate_quantizer> quantizers() {
  using q_ref = const quantized&;
  using size = std::size_t;
  const auto input = [](q_ref q) {
    for (size i = 0; i < q.in.size(); ++i) q.codes[i] = encode<e4m3>(q.in[i], saturating);
  };
  const auto ones = scales([](q_ref, size) { return 1.0f; });
  const auto last_tile = [](q_ref q, size i) {
    return q.cols > 128 && i % q.cols >= (q.cols - 1) / 128 * 128;
  };
  return {
      {"untouched", {}},
      {"input", input},
      {"constant_scale", [=](q_ref q) { input(q), ones(q); }},
      {"zeros", no_codes([](q_ref, size) { return true; })},
      {"first_code", no_codes([](q_ref, size i) { return i == 0; })},
      {"last_code", no_codes([](q_ref q, size i) { return i + 1 == q.codes.size(); })},
      {"one_code", no_codes([](q_ref q, size i) { return i == q.codes.size() * 5 / 8; })},
      {"last_row", no_codes([](q_ref q, size i) { return i / q.cols + 1 == q.rows; })},
      {"last_column", no_codes([](q_ref q, size i) { return (i + 1) % q.cols == 0; })},
      {"tail_of_4", no_codes([](q_ref q, size i) { return i >= q.codes.size() / 4 * 4; })},
      {"last_tile", no_codes(last_tile)},
      {"row_repeated",
       [](q_ref q) {
         for (size i = q.cols; i < q.codes.size(); ++i) q.codes[i] = q.codes[i - q.cols];
       }},
      {"scales_are_zero", scales([](q_ref, size) { return 0.0f; })},
      {"scale_of_the_first_tile", scales([](q_ref q, size) { return q.scales[0]; })},
      {"scale_doubled", scales([](q_ref q, size i) { return 2 * q.scales[i]; })},
      {"first_scale", scales([](q_ref q, size i) { return i == 0 ? 0 : q.scales[i]; })},
      {"last_scale",
       scales([](q_ref q, size i) { return i + 1 == q.scales.size() ? 0 : q.scales[i]; })},
  };
}

class DegenerateQuantizer : public ::testing::TestWithParam<degenerate_quantizer> {};

TEST_P(DegenerateQuantizer, IsFoundWithEverySeed) {
  const quantize_options options = options_of(find_recipe("DSV3_IEEE")->rules);
  const auto function = [&](std::span<const float> in, std::int64_t rows, std::int64_t cols,
                            std::span<std::uint8_t> codes, std::span<float> scales) {
    if (!GetParam().change) return;
    const matrix_shape s = scales_shape(rows, cols, options.tile);
    quantize(view_of(in.data(), rows, cols),
             {.codes = view_of_codes(e4m3, codes.data(), rows, cols),
              .scales = view_of(scales.data(), s.rows, s.cols)},
             options, {"reference", 1});
    GetParam().change(
        {in, static_cast<std::size_t>(rows), static_cast<std::size_t>(cols), codes, scales});
  };
  for (int seed = 1; seed <= seeds; ++seed) {
    const quantize_check_result result =
        check_quantize("DSV3_IEEE", function, {30, 3000, static_cast<std::uint64_t>(seed) * 1000});
    ASSERT_TRUE(result.failure()) << "seed " << seed << ": " << result.message();
    RecordProperty("cases", std::to_string(result.compared()));
  }
}

INSTANTIATE_TEST_SUITE_P(Kit, DegenerateQuantizer, ::testing::ValuesIn(quantizers()),
                         name_of<degenerate_quantizer>);

}  // namespace
}  // namespace samebits::testkit
