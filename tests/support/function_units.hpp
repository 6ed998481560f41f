// The function units' instructions by name, with the sums of their results.
//
// The sums are those of function_sum.hpp. They come from the program that was compared with an H100
// and an H200 on all 2^32 operands of the .ftz instructions (2026-11-22, 0 results differ), which
// shares no code with the library. For instructions without .ftz the program does ptxas's scaling
// in the processor's binary32 arithmetic.
#pragma once

#include <cstdint>

#include "numerics/hardware/function_units/ex2.hpp"
#include "numerics/hardware/function_units/lg2.hpp"
#include "numerics/hardware/function_units/rcp.hpp"
#include "numerics/hardware/function_units/rsqrt.hpp"
#include "numerics/hardware/function_units/sqrt.hpp"
#include "support/function_sum.hpp"

namespace samebits::support {

inline constexpr summed_function unit_functions[] = {
    {"ex2.approx.ftz.f32", numerics::hopper::ex2_approx_ftz, 0xEBAA7CCFBECA4909,
     0xD3CAE6F7E36DE0E0},
    {"ex2.approx.f32", numerics::hopper::ex2_approx, 0x38548E9475762B69, 0xF284DC67F593E4EB},
    {"lg2.approx.ftz.f32", numerics::hopper::lg2_approx_ftz, 0x5660CE8FD7023190,
     0xDA2A152ED4E91F0A},
    {"lg2.approx.f32", numerics::hopper::lg2_approx, 0x2ED2E501D1809728, 0xE9D090CC803A5F73},
    {"rcp.approx.ftz.f32", numerics::hopper::rcp_approx_ftz, 0xD9AE555FEFCF0DEA,
     0xC026846EB14B5DCD},
    {"rcp.approx.f32", numerics::hopper::rcp_approx, 0x0383A9E4E0A01232, 0x494DF3A2B35A2605},
    {"rsqrt.approx.ftz.f32", numerics::hopper::rsqrt_approx_ftz, 0x8BCB12F57164AF74,
     0x13A3F472FD1FEA55},
    {"rsqrt.approx.f32", numerics::hopper::rsqrt_approx, 0xFF6A44BF217D0420, 0x93DEFF8F3D9ABF63},
    {"sqrt.approx.ftz.f32", numerics::hopper::sqrt_approx_ftz, 0xE0911C6F1C2BB1EE,
     0x5F7CEC04068ED450},
    {"sqrt.approx.f32", numerics::hopper::sqrt_approx, 0xA609CDF6A37BE84D, 0xDE916742BBE4A8DA},
};

/// Any change of a row changes this sum.
template <class Row>
constexpr std::uint64_t sum_of_rows(const Row& row_of, std::uint32_t rows) {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < rows; ++i) {
    const auto row = row_of(i);
    for (const std::int64_t value : {row.a, std::int64_t{row.b}, std::int64_t{row.d}}) {
      sum = sum * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(value);
    }
  }
  return sum;
}

}  // namespace samebits::support
