// The tables of function units, fitted anew from results: from those of the model the fit finds the
// model's tables; it finds changed rows, and does not accept another design.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "function_unit_probe/recordings.hpp"
#include "function_unit_probe/tables.hpp"
#include "numerics/hardware/function_units/ex2.hpp"
#include "numerics/hardware/function_units/lg2.hpp"
#include "numerics/hardware/function_units/rcp.hpp"
#include "numerics/hardware/function_units/rsqrt.hpp"
#include "numerics/hardware/function_units/sin_unit.hpp"
#include "numerics/hardware/function_units/sqrt.hpp"
#include "numerics/hardware/function_units/tanh_unit.hpp"
#include "samebits/error.hpp"

namespace samebits::function_units {
namespace {

namespace hopper = numerics::hopper;
using words = std::vector<std::uint32_t>;

std::uint32_t result_of(instruction what, std::uint32_t x) {
  switch (what) {
    case instruction::ex2_ftz: return hopper::ex2_approx_ftz(x);
    case instruction::lg2_ftz: return hopper::lg2_approx_ftz(x);
    case instruction::rcp_ftz: return hopper::rcp_approx_ftz(x);
    case instruction::rsqrt_ftz: return hopper::rsqrt_approx_ftz(x);
    case instruction::sin_ftz: return hopper::sin_approx_ftz(x);
    case instruction::tanh: return hopper::tanh_approx(x);
    default: return hopper::sqrt_approx_ftz(x);
  }
}

words results_of_model(instruction what, std::span<const std::uint32_t> operands) {
  words results;
  for (const std::uint32_t x : operands) results.push_back(result_of(what, x));
  return results;
}

const unit_table& table_of(std::string_view name) {
  for (const unit_table& t : tables()) {
    if (t.name == name) return t;
  }
  throw std::invalid_argument(std::string(name));
}

TEST(FunctionUnitTables, EveryTableIsFoundAnew) {
  for (const unit_table& table : tables()) {
    const fitted_table fitted = fit_table(table, results_of_model);
    EXPECT_TRUE(fitted.holds()) << table.name << ": " << fitted.holding;
    ASSERT_TRUE(fitted.complete()) << table.name;
    ASSERT_EQ(fitted.rows.size(), table.rows);
    for (std::uint32_t i = 0; i < fitted.rows.size(); ++i) {
      ASSERT_EQ(fitted.rows[i]->a_min, table.row(i).a) << table.name << ", row " << i;
    }
  }
}

/// rcp's results with a row 5 of its own.
template <class Significand>
recorder with_row_5(const Significand& significand) {
  return [&](instruction what, std::span<const std::uint32_t> operands) {
    words results = results_of_model(what, operands);
    for (std::size_t i = std::size_t{5} << 16; i < std::size_t{6} << 16; ++i) {
      const auto x = static_cast<std::uint32_t>(i & 0xFFFF) << 1;
      results[i] = 0x3F000000u + static_cast<std::uint32_t>(significand(x) >> 17);
    }
    return results;
  };
}

/// The header of one table; its coefficients are zeros.
std::string header_of(std::string_view name) {
  const unit_table& table = table_of(name);
  fitted_table fitted{&table, {}, 0};
  fitted.rows.assign(table.rows, row_fit{});
  return header_text(std::span(&fitted, 1), "a test");
}

TEST(FunctionUnitTables, HeadersNameTheUnitOfTheirRows) {
  const auto has = [](std::string_view name, std::string_view line) {
    return header_of(name).find(line) != std::string::npos;
  };
  EXPECT_TRUE(has("ex2", "2^-17 ulp; an ulp is 2^-23, the last place of results in [1, 2).\n"));
  EXPECT_TRUE(
      has("sqrt_odd", "2^-18 ulp; an ulp is 2^-23, the last place of results in [1, 2).\n"));
  for (const std::string_view name : {"rcp", "rsqrt_even", "rsqrt_odd"}) {
    EXPECT_TRUE(has(name, "2^-17 ulp; an ulp is 2^-24, the last place of results in [1/2, 1).\n"));
  }
  EXPECT_TRUE(has("lg2", "// Unit of the rows: 2^-41.\n"));
  EXPECT_TRUE(has("sin", "// Unit of the rows: 2^-39.\n"));
  EXPECT_TRUE(has("tanh", "SAMEBITS_TABLE unit_row tanh_rows[51] = {\n"));
  EXPECT_TRUE(has("tanh", "the instruction's results at 131072 operands;\n"));
  EXPECT_TRUE(has("rcp", "the instruction's results at 65536 operands;\n"));
}

TEST(FunctionUnitTables, AChangedRowIsFound) {
  hopper::unit_row changed = hopper::rcp_row(5);
  changed.b += 1;
  const auto significand = [&](std::uint32_t x) { return hopper::interpolate(changed, x); };
  const fitted_table fitted = fit_table(table_of("rcp"), with_row_5(significand));
  EXPECT_FALSE(fitted.holds());
  EXPECT_EQ(fitted.holding, 127);
  ASSERT_TRUE(fitted.complete());
  EXPECT_EQ(fitted.rows[5]->b, changed.b);
  EXPECT_EQ(fitted.rows[5]->d, changed.d);
  EXPECT_LE(fitted.rows[5]->a_min, changed.a);
  EXPECT_GE(fitted.rows[5]->a_max, changed.a);
  const std::string text = header_text(std::span(&fitted, 1), "a test");
  EXPECT_NE(text.find("SAMEBITS_TABLE unit_row rcp_rows[128] = {\n"), std::string::npos) << text;
  EXPECT_NE(text.find(", " + std::to_string(changed.b) + ", " + std::to_string(changed.d) + "},"),
            std::string::npos);
}

TEST(FunctionUnitTables, AnotherSquarerDoesNotFit) {
  const hopper::unit_row row = hopper::rcp_row(5);
  const auto significand = [&](std::uint32_t x) {
    const std::int64_t square = (std::int64_t{x} * x) >> 17;  // no partial product is left out
    return row.a + row.b * std::int64_t{x} + row.d * square;
  };
  const fitted_table fitted = fit_table(table_of("rcp"), with_row_5(significand));
  EXPECT_FALSE(fitted.complete());
  EXPECT_FALSE(fitted.rows[5].has_value());
  EXPECT_EQ(fitted.holding, 127);
}

TEST(FunctionUnitTables, RecordingsAreSmallAndNamedOnce) {
  std::size_t bytes = 0;
  std::vector<std::string_view> names;
  for (const recording& r : recordings()) {
    bytes += r.count * static_cast<std::size_t>(r.bytes);
    for (const std::string_view other : names) EXPECT_NE(other, r.name);
    names.push_back(r.name);
    EXPECT_GE(r.what, instruction::sin_ftz);
  }
  EXPECT_LT(bytes, std::size_t{8} << 20);
  const recording pairs{"pairs", instruction::ex2_f16x2, 0xFFFF0000, 0xFFFF0001, 3, 4};
  EXPECT_EQ(operands_of(pairs), (words{0xFFFF0000, 0xFFFE0001, 0xFFFD0002}));
  EXPECT_EQ(bytes_of(words{0x11223344, 0xAABBCCDD}, 2), std::string("\x44\x33\xDD\xCC"));
  EXPECT_EQ(text_of(pairs),
            "pairs.bin ex2.approx.f16x2 first FFFF0000 stride FFFF0001 count 3 bytes 4");
}

TEST(FunctionUnitProbe, InstructionsOfBf16NeedCapability90) {
  device gpu{};
  gpu.capability = [] { return 89; };
  const std::vector<instruction> older = instructions_of(gpu);
  EXPECT_EQ(older.size(), std::size_t{17});
  for (const instruction what : older) {
    EXPECT_EQ(name(what).find("bf16"), std::string_view::npos) << name(what);
  }
  gpu.capability = [] { return 90; };
  EXPECT_EQ(instructions_of(gpu).size(), std::size_t{instruction_count});
}

// This test is linked without the GPU's half.
TEST(FunctionUnitProbe, AProgramWithoutTheGpusHalfIsRefused) {
  EXPECT_THROW((void)current_device(), unsupported);
}

}  // namespace
}  // namespace samebits::function_units
