// Matrix products against the oracle, by every host backend: all kinds of accumulation, scales, C,
// strides and threads.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "oracle/matmul.hpp"
#include "samebits/matmul.hpp"
#include "support/backends.hpp"
#include "support/effort.hpp"
#include "tensor_cores/matmul_case.hpp"

namespace samebits {
namespace {

using namespace support;

const oracle::format& format_of(format_id f) { return oracle::format_named(name(f)); }

/// Of a tile of so many lines by so much of K.
oracle::scale_tiles tiles_of(std::int64_t high, std::int64_t deep) {
  using enum oracle::scale_tiles;
  if (high == 0) return whole;
  if (high == 128) return square_tiles;
  return deep == 128 ? lines_by_128 : lines;
}

oracle::dot_problem problem_of(const matmul_case& x, std::int64_t i, std::int64_t j) {
  oracle::dot_problem p;
  p.a_format = &format_of(x.a_format());
  p.b_format = &format_of(x.b_format());
  p.d_format = &format_of(x.d_format());
  for (std::int64_t k = 0; k < x.depth(); ++k) {
    p.a.push_back(static_cast<std::uint32_t>(x.a().at(i, k)));
    p.b.push_back(static_cast<std::uint32_t>(x.b().at(k, j)));
    p.a_scales.push_back(x.a_scale(i, k));
    p.b_scales.push_back(x.b_scale(k, j));
  }
  const matmul_options& o = x.options();
  const bool a_scaled = o.a_scales.values.data != nullptr;
  const bool b_scaled = o.b_scales.values.data != nullptr;
  p.scaled_per_block =
      (a_scaled && o.a_scales.tile.cols == 128) || (b_scaled && o.b_scales.tile.rows == 128);
  p.scaled_at_end = (a_scaled || b_scaled) && !p.scaled_per_block && x.depth() > 0;
  if (p.scaled_at_end) {
    p.a_end_scale = x.a_scale(i, 0);
    p.b_end_scale = x.b_scale(0, j);
  }
  p.kind = name(x.sum().kind);
  p.order = name(x.sum().order);
  if (o.scale_order) p.scale_order = name(*o.scale_order);
  p.a_tiles = tiles_of(o.a_scales.tile.rows, o.a_scales.tile.cols);
  p.b_tiles = tiles_of(o.b_scales.tile.cols, o.b_scales.tile.rows);
  if (x.sum().kind == accumulator_kind::tensor_core) {
    p.sums = &format_of(x.sum().result);
    p.unit = oracle::facts_of(name(x.sum().unit), *p.a_format, *p.b_format, *p.sums, x.products());
    p.promotion = static_cast<std::uint64_t>(x.sum().promotion);
  }
  p.has_c = o.c.data != nullptr;
  if (p.has_c) {
    p.c_first = o.c_enters == addend::first;
    p.c = x.c_code(i, j);
    p.c_format = &format_of(o.c.format);
  }
  return p;
}

TEST(MatmulProperty, EveryElementIsTheOracles) {
  const std::uint64_t cases = 15000 / effort_divisor;
  std::uint64_t compared = 0;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const matmul_sizes sizes = seed % 8 == 0 ? matmul_sizes{3, 3, 300} : matmul_sizes{4, 20, 40};
    const matmul_case x(seed, sizes,
                        seed % 2 == 0 ? random_kinds::all : random_kinds::tensor_cores);
    for (const std::string& backend : supported_backends()) {
      const strided_buffer d = x.run({backend, 1 + static_cast<int>(seed % 3)});
      ASSERT_TRUE(d.guards_are_intact()) << backend << ", " << x.text();
      for (std::int64_t i = 0; i < x.rows(); ++i) {
        for (std::int64_t j = 0; j < x.cols(); ++j) {
          // every backend on few elements, so that the oracle's time goes into many cases
          if ((i * x.cols() + j) % 5 != static_cast<std::int64_t>(seed % 5)) continue;
          ++compared;
          ASSERT_EQ(d.at(i, j), oracle::element_of_product(problem_of(x, i, j)))
              << backend << ", element " << i << ", " << j << ", " << x.text();
        }
      }
    }
  }
  RecordProperty("compared", static_cast<int>(compared));
  EXPECT_GT(compared, 5 * cases);
}

}  // namespace
}  // namespace samebits
