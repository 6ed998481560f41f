// Function units for a copy of fpinspect: a GPU whose rcp.approx.f32 has three wrong results, and
// whose log of rule exact has another sum.
//
// Defining this function puts them in the place of the CUDA ones.
#include <string>

#include "function_unit_probe/device.hpp"
#include "numerics/functions/exact_functions.hpp"

namespace samebits::function_units {
namespace {

comparison compare_planted(instruction what) {
  if (what != instruction::rcp) return {};
  return {3, 0x3F800001, 0x3F7FFFFD, 0x3F7FFFFE};
}

std::uint64_t planted_sum(const numerics::real::exact_row& f) {
  return f.value == numerics::real::exact_function::log ? f.sum + 2 : f.sum;
}

constexpr device planted = {[] { return std::string(); },
                            [] { return std::string("a planted GPU"); }, [] { return 80; },
                            compare_planted, planted_sum};

}  // namespace
}  // namespace samebits::function_units

extern "C" const samebits::function_units::device* samebits_function_unit_device();
const samebits::function_units::device* samebits_function_unit_device() {
  return &samebits::function_units::planted;
}
