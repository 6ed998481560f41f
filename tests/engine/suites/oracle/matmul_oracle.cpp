// Matrix products against the oracle, by every host backend: all kinds of accumulation, scales, C,
// strides and threads.
#include "engine/cases/matmul.hpp"

#include <algorithm>

#include "engine/suites/rapidcheck.hpp"
#include "oracle/convert.hpp"
#include "oracle/matmul.hpp"
#include "support/rules.hpp"

namespace samebits::support {
namespace {

/// Of a tile of so many lines by so much of K.
oracle::scale_tiles tiles_of(std::int64_t high, std::int64_t deep) {
  using enum oracle::scale_tiles;
  if (high == 0) return whole;
  if (high > 1) return square_tiles;
  return deep != 0 ? lines_by_128 : lines;
}

/// The code in fp32 of the scale of an element's tile.
std::uint32_t scale_at(const scales_of_case& s, const matrix_view& v, std::int64_t row,
                       std::int64_t col) {
  if (!s.given) return 0x3F800000;
  const std::uint64_t code = code_at(v, s.tile.rows == 0 ? 0 : row / s.tile.rows,
                                     s.tile.cols == 0 ? 0 : col / s.tile.cols);
  return static_cast<std::uint32_t>(oracle::convert(oracle_of(s.format), oracle_of(format_id::fp32),
                                                    code, {.nan = nan_policy::preserve_sign}));
}

oracle::dot_problem problem_of(const matmul_case& c, const call_site& site, std::int64_t i,
                               std::int64_t j) {
  const std::vector<matrix_view>& v = site.views;
  const auto a_scale = [&](std::int64_t k) {
    return scale_at(c.a_scales, v[matmul_buffers::a_scales], i, k);
  };
  const auto b_scale = [&](std::int64_t k) {
    return scale_at(c.b_scales, v[matmul_buffers::b_scales], k, j);
  };
  const auto as_multiplied = [&](format_id f) { return c.sum.fp32_as_tf32 ? format_id::tf32 : f; };
  const auto code = [&](format_id f, std::uint64_t x) {
    return static_cast<std::uint32_t>(
        oracle::convert(oracle_of(f), oracle_of(as_multiplied(f)), x, {}));
  };
  oracle::dot_problem p;
  p.a_format = &oracle_of(as_multiplied(c.a_format));
  p.b_format = &oracle_of(as_multiplied(c.b_format));
  p.d_format = &oracle_of(c.d_format);
  for (std::int64_t k = 0; k < c.a.cols; ++k) {
    p.a.push_back(code(c.a_format, code_at(v[matmul_buffers::a], i, k)));
    p.b.push_back(code(c.b_format, code_at(v[matmul_buffers::b], k, j)));
    p.a_scales.push_back(a_scale(k));
    p.b_scales.push_back(b_scale(k));
  }
  const std::int64_t deep_a = c.a_scales.given ? c.a_scales.tile.cols : 0;
  const std::int64_t deep_b = c.b_scales.given ? c.b_scales.tile.rows : 0;
  p.scaled_per_block = deep_a != 0 || deep_b != 0;
  if (p.scaled_per_block) {
    p.scale_block = static_cast<std::size_t>(deep_a == 0   ? deep_b
                                             : deep_b == 0 ? deep_a
                                                           : std::min(deep_a, deep_b));
  }
  p.scaled_at_end = (c.a_scales.given || c.b_scales.given) && !p.scaled_per_block && c.a.cols > 0;
  if (p.scaled_at_end) {
    p.a_end_scale = a_scale(0);
    p.b_end_scale = b_scale(0);
  }
  p.kind = name(c.sum.kind);
  p.order = name(c.sum.order);
  if (c.scale_order) p.scale_order = name(*c.scale_order);
  p.a_tiles = tiles_of(c.a_scales.tile.rows, c.a_scales.tile.cols);
  p.b_tiles = tiles_of(c.b_scales.tile.cols, c.b_scales.tile.rows);
  if (c.sum.kind == accumulator_kind::tensor_core) {
    p.sums = &oracle_of(c.sum.result);
    p.unit = oracle::facts_of(name(c.sum.unit), *p.a_format, *p.b_format, *p.sums, c.products);
  }
  p.promotion = static_cast<std::uint64_t>(c.sum.promotion);
  p.slices = static_cast<std::size_t>(c.sum.slices);
  p.slice_order = name(c.sum.slice_order);
  p.slice_tile = static_cast<std::size_t>(c.sum.slice_tile);
  p.slice_sum = name(c.sum.slice_sum);
  p.slice_rounding = name(c.sum.slice_rounding);
  p.residue_tile = static_cast<std::size_t>(c.sum.residue_tile);
  p.has_c = c.has_c;
  if (p.has_c) {
    p.c_first = c.c_enters == addend::first;
    p.c_after_first_slice = c.c_enters == addend::after_first_slice;
    p.c = static_cast<std::uint32_t>(code_at(v[matmul_buffers::c], i, j));
    p.c_format = &oracle_of(c.c_format);
  }
  return p;
}

returned_values by_oracle(const matmul_case& c, const call_site& site) {
  const matrix_view& d = site.views[matmul_buffers::d];
  for_each_element(d, [&](std::int64_t i, std::int64_t j) {
    put_code(d, i, j, oracle::element_of_product(problem_of(c, site, i, j)));
  });
  return {};
}

TEST(MatmulOracle, EveryElement) {
  for (const random_kinds kinds : {random_kinds::all, random_kinds::tensor_cores}) {
    expect_on_hosts(matmul_operation({3, 7, 40}, kinds), "the oracle", by_oracle, 6000);
    expect_on_hosts(matmul_operation({2, 2, 300}, kinds), "the oracle", by_oracle, 800);
  }
}

}  // namespace
}  // namespace samebits::support
