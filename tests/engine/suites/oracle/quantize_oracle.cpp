// Quantization of matrices and lists against the oracle: every code, scale and statistic; and back.
#include <algorithm>
#include <bit>
#include <limits>

#include "engine/cases/operations.hpp"
#include "engine/cases/quantize.hpp"
#include "engine/suites/rapidcheck.hpp"
#include "numerics/hardware/function_units/rcp.hpp"
#include "oracle/convert.hpp"
#include "oracle/quantize.hpp"
#include "support/rules.hpp"

namespace samebits::support {
namespace {

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

oracle::tiling tiling_of(std::int64_t rows, std::int64_t cols, const tile_shape& tile) {
  const auto size = [](std::int64_t extent, std::int64_t whole) {
    return static_cast<std::uint64_t>(extent != 0 ? extent : std::max<std::int64_t>(whole, 1));
  };
  return {static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols), size(tile.rows, rows),
          size(tile.cols, cols)};
}

oracle::quantize_rule rule_of(const quantize_options& o, format_id from) {
  oracle::quantize_rule rule;
  rule.scale.rule = o.scale;
  rule.scale.reciprocal_unit = [](std::uint32_t x) { return numerics::hopper::rcp_approx_ftz(x); };
  rule.scale.nonfinite = o.nonfinite;
  if (o.scale_overflow == scale_overflow::input_max) {
    rule.scale.infinite_factor = from == format_id::fp32   ? 0x7F7FFFFF
                                 : from == format_id::bf16 ? 0x7F7F0000
                                                           : 0x477FE000;  // 65504
  }
  rule.scale.eps = bits(o.eps);
  if (o.upper_bound != std::numeric_limits<float>::infinity()) {
    rule.scale.upper_bound = bits(o.upper_bound);
  }
  rule.cast = {o.rounding, o.overflow, o.nan};
  rule.random = o.random;
  return rule;
}

/// The elements of a matrix in row-major order.
template <class Code>
std::vector<Code> elements_of(const const_matrix_view& v) {
  std::vector<Code> all;
  for_each_element(v, [&](std::int64_t row, std::int64_t col) {
    all.push_back(static_cast<Code>(code_at(v, row, col)));
  });
  return all;
}

template <class Code>
void put_elements(const matrix_view& v, const std::vector<Code>& all) {
  if (v.data == nullptr) return;
  std::size_t i = 0;
  for_each_element(v,
                   [&](std::int64_t row, std::int64_t col) { put_code(v, row, col, all.at(i++)); });
}

template <class Code>
void put_transposed(matrix_view v, const std::vector<Code>& all) {
  std::swap(v.rows, v.cols);
  std::swap(v.row_stride, v.col_stride);
  put_elements(v, all);
}

void put_statistics(quantize_statistics* to, std::size_t elements,
                    const oracle::quantize_statistics& s) {
  if (to == nullptr) return;
  *to = {.elements = elements,
         .zeros = s.zeros,
         .nan = s.nan,
         .inf = s.inf,
         .underflowed = s.underflowed,
         .saturated = s.overflowed,
         .amax = std::bit_cast<float>(s.amax),
         .min_nonzero = std::bit_cast<float>(s.min_nonzero),
         .signal = std::bit_cast<double>(s.signal_energy),
         .noise = std::bit_cast<double>(s.error_energy)};
}

/// Quantizes a tensor whose buffers begin at `first`, as number `position` of a list.
void quantize_tensor(const quantize_case& c, const quantize_options& options, const call_site& site,
                     std::size_t first = 0, std::uint64_t position = 0) {
  const matrix_view& in = site.views[first + quantize_buffers::in];
  oracle::quantize_rule rule = rule_of(options, c.from);
  rule.random.stream += position;
  if (c.inverse_scales) {
    rule.inverse_scales =
        elements_of<std::uint32_t>(site.views[first + quantize_buffers::inverse_scales]);
  }
  if (c.tensor_scale) {
    const matrix_view& given = site.views[first + quantize_buffers::tensor_scale];
    rule.tensor_scale = elements_of<std::uint32_t>(given).at(0);
  }
  const oracle::quantized expected =
      oracle::quantize(oracle_of(c.from), oracle_of(c.to), elements_of<std::uint32_t>(in),
                       tiling_of(in.rows, in.cols, options.tile), rule);
  const quantize_outputs out = outputs_of(c, site, first);
  auto scales = c.scale_format == format_id::e8m0 ? expected.e8m0 : expected.scales;
  if (c.scale_format == format_id::e4m3) {
    for (std::uint32_t& s : scales) {
      s = static_cast<std::uint32_t>(
          oracle::convert(oracle_of(format_id::fp32), oracle_of(format_id::e4m3), s, {}));
    }
  }
  put_elements(out.tensor_scale, std::vector{expected.tensor_scale});
  put_elements(out.codes, expected.codes);
  put_elements(out.scales, scales);
  put_transposed(out.codes_transposed, expected.codes);
  put_transposed(out.scales_transposed, scales);
  put_statistics(out.statistics, expected.codes.size(), expected.statistics);
}

returned_values quantize_by_oracle(const quantize_case& c, const call_site& site) {
  if (c.skip.value_or(0) == 0) quantize_tensor(c, c.options, site);
  return {};
}

returned_values list_by_oracle(const list_quantization& list, const call_site& site) {
  for (std::size_t i = 0; i < list.tensors.size(); ++i) {
    quantize_tensor(list.tensors[i], list.tensors[0].options, site, i * quantize_buffers::of_tensor,
                    i);
  }
  return {};
}

returned_values dequantize_by_oracle(const quantize_case& c, const call_site& site) {
  const matrix_view &codes = site.views[0], &scales = site.views[1], &out = site.views[2];
  auto factors = elements_of<std::uint32_t>(scales);
  for (std::uint32_t& code : factors) {
    code = static_cast<std::uint32_t>(oracle::convert(oracle_of(c.scale_format),
                                                      oracle_of(format_id::fp32), code,
                                                      {.nan = nan_policy::preserve_sign}));
  }
  put_elements(
      out, oracle::dequantize(oracle_of(c.to), oracle_of(c.from), elements_of<std::uint8_t>(codes),
                              factors, tiling_of(out.rows, out.cols, c.options.tile), {},
                              c.options.scale, elements_of<std::uint32_t>(site.views[3]).at(0)));
  return {};
}

TEST(QuantizeOracle, Matrices) {
  expect_on_hosts(quantize_operation(matrix_sizes::small), "the oracle", quantize_by_oracle, 250);
}
class PresetOracle : public ::testing::TestWithParam<const recipe_preset*> {};
TEST_P(PresetOracle, Matrices) {
  expect_on_hosts(recipe_operation(*GetParam(), matrix_sizes::small), "the oracle",
                  quantize_by_oracle, 40);
}
INSTANTIATE_TEST_SUITE_P(, PresetOracle, ::testing::ValuesIn(presets_of_current_scales()),
                         [](const auto& tested) { return std::string(tested.param->name); });

TEST(QuantizeOracle, Lists) {
  expect_on_hosts(quantize_list_operation(matrix_sizes::small), "the oracle", list_by_oracle, 30);
}
TEST(QuantizeOracle, Dequantization) {
  expect_on_hosts(dequantize_operation(), "the oracle", dequantize_by_oracle, 200);
}

}  // namespace
}  // namespace samebits::support
