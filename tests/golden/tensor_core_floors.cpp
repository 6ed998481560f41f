// Whether the worked results of tensor cores tell every floor of a row apart that operands can.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "numerics/hardware/accumulate.hpp"
#include "samebits/core/tensor_unit.hpp"
#include "tensor_core_probe/check.hpp"

namespace samebits {
namespace {

std::vector<tensor_core_result> read_results() {
  std::ifstream file(SAMEBITS_GOLDEN_PROBES);
  std::vector<tensor_core_result> all;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') all.push_back(parse_tensor_core_result(line).value());
  }
  return all;
}

/// What the model makes of a result's operands with that row.
std::uint32_t replayed(const tensor_core_result& r, const tensor_arithmetic& row) {
  const auto& [a, b, result, products] = r.operands;
  return backends::tensor_cores::result_of(
      numerics::accumulate_rule_of(row, a, b, result, products), r.x);
}

/// All from one to the other.
struct floors {
  int minimum;
  int maximum;
};

constexpr floors searched = {-300, 100};

/// Floors of a row, around its own, with which every result is as written.
floors floors_left(const std::vector<tensor_core_result>& all, tensor_arithmetic row,
                   format_id result) {
  int& floor = result == format_id::fp32 ? row.floor_fp32 : row.floor_fp16;
  const auto agrees = [&](int with) {
    floor = with;
    return std::all_of(all.begin(), all.end(), [&](const tensor_core_result& r) {
      return r.unit != row.unit || tensor_operands_of(r.operands.a, r.operands.b) != row.operands ||
             r.operands.result != result || replayed(r, row) == r.d;
    });
  };
  const int own = floor;
  floors left = {own, own};
  while (left.minimum > searched.minimum && agrees(left.minimum - 1)) --left.minimum;
  while (left.maximum < searched.maximum && agrees(left.maximum + 1)) ++left.maximum;
  return left;
}

/// The floors that no operands tell apart: one where products reach below the least result, else
/// all up to where the least term would be cut.
floors floors_alike(const tensor_arithmetic& row, format_id result) {
  const bool wide = result == format_id::fp32;
  const int own = wide ? row.floor_fp32 : row.floor_fp16;
  if (row.operands == tensor_operands::bfloat16 || row.operands == tensor_operands::tf32 ||
      (row.operands == tensor_operands::binary16 && !wide)) {
    return {own, own};
  }
  constexpr int min_product = -32;  // of e5m2
  if (row.path == tensor_path::by_fp16 || !wide) {
    return {searched.minimum, row.alignment_bits + min_product};
  }
  // 2^-149, or what of a subnormal sum so far, exponent -126, is kept at all
  return {searched.minimum, std::max(-126, row.alignment_bits - 149)};
}

TEST(TensorCoreFloors, AreToldApart) {
  const std::vector<tensor_core_result> all = read_results();
  for (int i = 0; i < tensor_row_count; ++i) {
    const tensor_arithmetic row = tensor_row(i);
    for (const format_id result : {format_id::fp32, format_id::fp16}) {
      if ((result == format_id::fp32 ? row.fp32 : row.fp16) == evidence::none) continue;
      SCOPED_TRACE(std::string(name(row.unit)) + " " + std::string(name(row.operands)) + " into " +
                   std::string(name(result)));
      const floors left = floors_left(all, row, result);
      const floors alike = floors_alike(row, result);
      EXPECT_EQ(left.minimum, alike.minimum);
      EXPECT_EQ(left.maximum, alike.maximum);
    }
  }
}

}  // namespace
}  // namespace samebits
