// sin, cos, tanh and the 16-bit instructions of the function units against results recorded on an
// H100 (2026-11-23, CUDA 13.0): their hashes are equal.
#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <utility>

#include "function_unit_probe/model.hpp"
#include "numerics/hardware/function_units/tables/sin_table.hpp"
#include "numerics/hardware/function_units/tables/tanh_table.hpp"
#include "support/function_units.hpp"

namespace samebits::numerics::hopper {
namespace {

using function_units::instruction;
using enum instruction;

/// Results at the operands first + i * stride, 0 <= i < count.
struct recording {
  const char* name;
  instruction what;
  std::uint32_t first;   ///< operand bits
  std::uint32_t stride;  ///< modulo 2^32
  std::uint32_t count;
  int bytes;           ///< of each result that count
  std::uint64_t hash;  ///< FNV-1a of the GPU's results, little-endian
};

constexpr std::uint32_t all16 = 1u << 16;
constexpr recording recordings[] = {
    // tanh: from 2^-11 to 16, an odd distance apart; then whole spans of neighbours.
    {"tanh_overview", tanh, 0x3A000000, 1921, all16, 4, 0xBBC2BD8AD7E4C45F},
    {"tanh_at_1_2", tanh, 0x3F000000, 1, 1u << 17, 4, 0x95CB0FB79968F985},
    {"tanh_at_3_4", tanh, 0x3F400000, 1, 1u << 16, 4, 0x6C88E91A4BDC7F85},
    {"tanh_at_1", tanh, 0x3F800000, 1, 1u << 16, 4, 0xBC49F83BB3BD9F65},
    {"tanh_at_1_8", tanh, 0x3E000000, 1, 1u << 16, 4, 0x1EBEA0EAF9F51CC5},
    {"tanh_all_exponents", tanh, 0x00000000, 65537, all16, 4, 0xDBC0062FD76E98E4},
    // sin and cos: from 2^-12 to 16; whole rows of a table of 64 in a quarter turn.
    {"sin_overview", sin_ftz, 0x39800000, 2047, all16, 4, 0x8EB9CC49213F3DF5},
    {"cos_overview", cos_ftz, 0x39800000, 2047, all16, 4, 0xA6C71C35D114B8F5},
    {"sin_at_1", sin_ftz, 0x3F800000, 1, 1u << 18, 4, 0x59D304BDC174333F},
    {"cos_at_1", cos_ftz, 0x3F800000, 1, 1u << 18, 4, 0x36E1751C7766DF71},
    {"sin_at_1_64", sin_ftz, 0x3C800000, 1, 1u << 16, 4, 0xE1908B23A5010C05},
    {"cos_at_1_64", cos_ftz, 0x3C800000, 1, 1u << 16, 4, 0x68641C6F5A2E78C0},
    {"sin_all_exponents", sin_ftz, 0x00000000, 65537, all16, 4, 0x3DDD857B22F34D6C},
    {"cos_all_exponents", cos_ftz, 0x00000000, 65537, all16, 4, 0x1138321B0B99FF97},
    // 16-bit forms: all codes; of pairs the codes i (low) and 65535 - i (high).
    {"ex2_f16", ex2_f16, 0, 1, all16, 2, 0xBB15247E36918E63},
    {"ex2_f16x2", ex2_f16x2, 0xFFFF0000, 0xFFFF0001, all16, 4, 0x674B5133295C7829},
    {"ex2_ftz_bf16", ex2_ftz_bf16, 0, 1, all16, 2, 0xD76E7433B30F62F0},
    {"ex2_ftz_bf16x2", ex2_ftz_bf16x2, 0xFFFF0000, 0xFFFF0001, all16, 4, 0x3AA2E25B0D5FF4A1},
    {"tanh_f16", tanh_f16, 0, 1, all16, 2, 0x773F8C9F3AFB4DA5},
    {"tanh_f16x2", tanh_f16x2, 0xFFFF0000, 0xFFFF0001, all16, 4, 0x6DE85C1D0E5E070D},
    {"tanh_bf16", tanh_bf16, 0, 1, all16, 2, 0xE5DE00266BC2E91D},
    {"tanh_bf16x2", tanh_bf16x2, 0xFFFF0000, 0xFFFF0001, all16, 4, 0xD05C92892F5F6DF5},
};

/// The model of an instruction known at run time.
std::uint32_t (*model_of(instruction what))(std::uint32_t) {
  return [&]<int... I>(std::integer_sequence<int, I...>) {
    static constexpr std::uint32_t (*models[])(std::uint32_t) = {
        function_units::model_of<static_cast<instruction>(I)>...};
    return models[static_cast<int>(what)];
  }
  (std::make_integer_sequence<int, function_units::instruction_count>{});
}

std::uint64_t hash_of(const recording& r) {
  const auto model = model_of(r.what);
  std::uint64_t hash = 0xCBF29CE484222325;
  for (std::uint32_t i = 0; i < r.count; ++i) {
    const std::uint32_t result = model(r.first + i * r.stride);
    for (int b = 0; b < r.bytes; ++b) {
      hash = (hash ^ ((result >> (8 * b)) & 0xFF)) * 0x100000001B3;
    }
  }
  return hash;
}

TEST(FunctionUnitsRecorded, ModelsReturnTheRecordedResults) {
  for (const recording& r : recordings) EXPECT_EQ(hash_of(r), r.hash) << r.name;
}

// The recorded operands hold no infinity.
static_assert(sin_approx_ftz(0x7F800000) == 0x7FFFFFFF && sin_approx_ftz(0xFF800000) == 0x7FFFFFFF);
static_assert(cos_approx_ftz(0x7F800000) == 0x7FFFFFFF && cos_approx_ftz(0xFF800000) == 0x7FFFFFFF);

// The expected values are those of the measured tables.
static_assert(std::size(tanh_rows) == 51 && std::size(sin_rows) == 64);
static_assert(support::sum_of_rows(tanh_row, 51) == 0x82B68FA631F283B1);
static_assert(support::sum_of_rows(sin_row, 64) == 0xD0A1BC22DEF382B1);

}  // namespace
}  // namespace samebits::numerics::hopper
