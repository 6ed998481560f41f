// Scaled FP8 products that cuBLASLt returned on a GPU, against matmul() without one.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "samebits/samebits.hpp"

namespace samebits {
namespace {

/// Some rows of A and D, some columns of B, and their scales; tests/golden/README.md.
struct recording {
  std::string text;
  format_id a_format, w_format;
  std::int64_t rows, cols, depth, promotion;
  tile_shape a_tile, w_tile;  ///< of [rows, K] and [cols, K]
  std::vector<std::uint8_t> a, w;
  std::vector<std::uint32_t> a_scales, w_scales;  ///< for each line
  std::vector<std::uint32_t> d;

  [[nodiscard]] bool scaled_along_k() const { return a_tile.cols != 0; }
  [[nodiscard]] scale_order order() const {
    return cublaslt_order(a_tile, {w_tile.cols, w_tile.rows});
  }
};

tile_shape tile_named(const std::string& text) {
  if (text == "whole") return {0, 0};
  if (text == "line") return {1, 0};
  if (text == "line_by_128") return {1, 128};
  if (text == "square_of_128") return {128, 128};
  throw std::runtime_error("no tiles are named " + text);
}

/// Numbers of so many digits each, to the end of the line, spaces between or not.
template <class Word>
void read_words(std::istringstream& in, std::vector<Word>& to) {
  constexpr std::size_t digits = 2 * sizeof(Word);
  for (std::string part; in >> part;) {
    for (std::size_t at = 0; at < part.size(); at += digits) {
      to.push_back(static_cast<Word>(std::stoul(part.substr(at, digits), nullptr, 16)));
    }
  }
}

std::vector<recording> read_recordings(const std::string& path) {
  std::ifstream file(path);
  std::vector<recording> all;
  std::string text;
  for (std::string line; std::getline(file, line);) {
    if (line[0] == '#') {
      text = line;
      continue;
    }
    std::istringstream in(line);
    std::string key;
    in >> key;
    if (key == "product") {
      recording r{};
      std::string a, w, a_tile, w_tile;
      in >> a >> w >> r.rows >> r.cols >> r.depth >> r.promotion >> a_tile >> w_tile;
      r.text = text;
      r.a_format = find_format(a).value();
      r.w_format = find_format(w).value();
      r.a_tile = tile_named(a_tile);
      r.w_tile = tile_named(w_tile);
      all.push_back(r);
      continue;
    }
    recording& r = all.at(all.size() - 1);
    switch (key[0]) {
      case 'a': read_words(in, r.a); break;
      case 'w': read_words(in, r.w); break;
      case 's': read_words(in, r.a_scales); break;
      case 't': read_words(in, r.w_scales); break;
      default: read_words(in, r.d); break;
    }
  }
  return all;
}

/// What matmul() returns, with a scale for each line in place of the library's tiles.
std::vector<std::uint32_t> replayed(const recording& r, scale_order order, const executor& where) {
  const std::int64_t along = r.scaled_along_k() ? (r.depth + 127) / 128 : 1;
  const std::int64_t deep = r.scaled_along_k() ? 128 : 0;
  matmul_options options;
  options.scale_order = order;
  options.a_scales = {view_of_codes(format_id::fp32, r.a_scales.data(), r.rows, along), {1, deep}};
  options.b_scales = {transposed(view_of_codes(format_id::fp32, r.w_scales.data(), r.cols, along)),
                      {deep, 1}};
  std::vector<std::uint32_t> d(r.d.size());
  matmul(view_of_codes(r.a_format, r.a.data(), r.rows, r.depth),
         transposed(view_of_codes(r.w_format, r.w.data(), r.cols, r.depth)),
         view_of_codes(format_id::fp32, d.data(), r.rows, r.cols),
         accumulator::tensor_core(tensor_unit::hopper_wgmma, r.promotion), options, where);
  return d;
}

/// A bit for each order with which the results are those recorded.
unsigned orders_of(const recording& r) {
  unsigned right = 0;
  for (int o = 0; o < enum_count<scale_order>; ++o) {
    if (replayed(r, static_cast<scale_order>(o), {}) == r.d) right |= 1u << o;
  }
  return right;
}

TEST(ScaledProducts, AreTheGpusInItsOrderOfScales) {
  const std::vector<recording> all = read_recordings(SAMEBITS_GOLDEN_SCALED_PRODUCTS);
  std::map<std::array<std::int64_t, 4>, std::vector<unsigned>> right;
  for (const recording& r : all) {
    ASSERT_EQ(r.d.size(), static_cast<std::size_t>(r.rows * r.cols)) << r.text;
    for (const backend_info& backend : compiled_backends()) {
      if (backend.space != memory_space::host || !backend.supported) continue;
      EXPECT_EQ(replayed(r, r.order(), {backend.name, 1}), r.d) << backend.name << ", " << r.text;
    }
    right[{r.a_tile.rows, r.a_tile.cols, r.w_tile.rows, r.w_tile.cols}].push_back(orders_of(r));
  }
  EXPECT_EQ(right.size(), 5u);
  for (const auto& [tiles, orders] : right) {
    // what every recording of these tiles agrees with
    EXPECT_EQ(std::popcount(std::accumulate(orders.begin(), orders.end(), ~0u, std::bit_and<>{})),
              1);
  }
}

}  // namespace
}  // namespace samebits
