// Bias corrections of PyTorch's fused optimizers and dynamic 8-bit codes of bitsandbytes, against
// recordings.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/binary64.hpp"
#include "numerics/update/constants.hpp"
#include "numerics/update/dynamic_codes.hpp"

namespace samebits {
namespace {

namespace n = numerics;

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

/// RN(1 - RN(beta^step)), with the power rounded once.
std::uint32_t one_minus_power(float beta, std::uint64_t step) {
  const std::uint64_t power = n::binary64::power(n::binary64::widen(bits(beta)), step);
  return n::binary32::add(n::binary32::one, n::negated(n::binary64::narrow(power)));
}

/// Steps at which 1 - powf(beta, step) of a GPU is not one_minus_power(), with the GPU's number.
/// Recorded on an H100; all steps until the power vanishes were compared.
TEST(step_constants, fused_bias_corrections_equal_recordings_of_a_gpu) {
  std::ifstream file(SAMEBITS_POWF_BIAS_CORRECTIONS);
  ASSERT_TRUE(file) << SAMEBITS_POWF_BIAS_CORRECTIONS;
  std::string line;
  std::getline(file, line);
  int rows = 0;
  std::set<std::pair<std::uint32_t, std::uint64_t>> exceptions;
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream columns(line);
    double beta = 0;
    std::uint64_t step = 0;
    std::string gpu;
    columns >> beta >> step >> gpu;
    const std::uint32_t b = bits(static_cast<float>(beta));
    exceptions.insert({b, step});
    EXPECT_EQ(n::update_detail::fused_bias_correction(b, step), std::stoul(gpu, nullptr, 16))
        << line;
    ++rows;
  }
  EXPECT_EQ(rows, 1270);
  for (const float beta : {0.8f, 0.9f, 0.95f, 0.98f, 0.99f, 0.999f}) {
    for (std::uint64_t step = 1; step < 3000; ++step) {
      if (exceptions.contains({bits(beta), step})) continue;
      ASSERT_EQ(n::update_detail::fused_bias_correction(bits(beta), step),
                one_minus_power(beta, step))
          << beta << " " << step;
    }
  }
}

/// Recorded from create_dynamic_map() of bitsandbytes 0.50.2 with PyTorch 2.11.0 on the processors
/// that the columns name.
TEST(dynamic_codes, tables_equal_recordings_of_bitsandbytes) {
  std::ifstream file(SAMEBITS_DYNAMIC_MAPS);
  ASSERT_TRUE(file) << SAMEBITS_DYNAMIC_MAPS;
  std::string line;
  std::getline(file, line);
  std::size_t rows = 0;
  int other_signed = 0;
  int other_unsigned = 0;
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream columns(line);
    std::size_t index = 0;
    std::uint32_t with[2] = {};
    std::uint32_t without[2] = {};
    columns >> index >> std::hex >> with[0] >> with[1] >> without[0] >> without[1];
    ASSERT_TRUE(columns) << line;
    ASSERT_EQ(index, rows++);
    EXPECT_EQ(n::dynamic_signed_table.values[index], with[0]) << line;
    EXPECT_EQ(n::dynamic_unsigned_table.values[index], with[1]) << line;
    other_signed += with[0] != without[0] ? 1 : 0;
    other_unsigned += with[1] != without[1] ? 1 : 0;
  }
  EXPECT_EQ(rows, 256u);
  EXPECT_EQ(other_signed, 42);
  EXPECT_EQ(other_unsigned, 31);
}

}  // namespace
}  // namespace samebits
