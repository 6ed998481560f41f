// The test kit: proves a user's conversion kernel against the reference, and finds a planted error
// of one ulp on ties in a variant of the kernel.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <span>

#include "e4m3_kernels.hpp"
#include "samebits/testkit/conversion.hpp"

using namespace samebits;

/// Checks bit for bit that the kernel converts fp32 to e4m3, nearest even, saturating.
template <ties Ties>
testkit::check_result prove() {
  const auto kernel = [](std::span<const float> in, std::span<std::uint8_t> out) {
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = to_e4m3<Ties>(in[i]);
  };
  return testkit::check_conversion({.from = format_id::fp32,
                                    .to = format_id::e4m3,
                                    .rule = {rounding::nearest_even, overflow::saturate}},
                                   kernel);
}

int main() {
  const testkit::check_result right = prove<ties::to_even>();
  std::cout << "to even: " << right.compared() << " results, " << (right ? "0 differ" : "differ")
            << "\n"
            << right.message();

  const testkit::check_result planted = prove<ties::away>();
  std::cout << "away: " << (planted ? "not caught" : "caught") << "\n" << planted.message() << "\n";
  const bool at_a_tie = planted.failure() && planted.failure()->is_tie;
  return right && at_a_tie ? 0 : 1;
}
