// Array arithmetic on each CUDA backend in numbers: spaces of 8 bits whole, and random operands of every
// operation, against the reference. On cuda-native the rules that it has, and no flags.
//
// SAMEBITS_COMPUTE_CASES: how many random operands each backend takes, by default 5 * 10^8.

#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/device_test.hpp"
#include "engine/cases/compute.hpp"
#include "engine/core/sweeps.hpp"

namespace samebits::support {
namespace {

using enum format_id;

constexpr std::array formats_of_8_bits = {e4m3, e5m2};

class ComputeMany : public DeviceTest {
 protected:
  /// A case, unless the backend lacks it. `drawn` counts the operands that are drawn.
  void add(operation op, const operand_formats& from, format_id to, std::int64_t size,
           std::int64_t drawn, const cast_rule& rule) {
    const bool native = GetParam() == "cuda-native";
    if (native && !native_supports(op, from, to, rule)) return;
    array_arithmetic_case c = dense_case(op, from, to, 1, size, rule);
    c.asked = native ? flags_asked::none : flags_asked::each;
    c.random = {11, 3, 77, std::nullopt, 1 + static_cast<int>(rule.rounding) * 5 % 32};
    c.drawn = drawn;
    c.content = cases_.size();
    cases_.push_back(c);
  }
  void expect_reference(std::size_t step) {
    expect_host_bits(
        listed_operation("compute", computations(), thinned(std::move(cases_), step), 16));
  }

  std::vector<array_arithmetic_case> cases_;

 private:
  static bool native_supports(operation op, const operand_formats& from, format_id to,
                              const cast_rule& rule) {
    return op != operation::rem && op != operation::rint && from == operand_formats{to, to, to} &&
           rule.rounding == rounding::nearest_even && rule.overflow != overflow::saturate_finite &&
           (rule.nan == nan_policy::canonical || to != e4m3);
  }
};

TEST_P(ComputeMany, AllPairsOf8BitsByEveryRule) {
  for (const auto& [f, op, rule] :
       combinations(formats_of_8_bits, enumerators<operation>(), every_rule())) {
    if (op != operation::fma) add(op, {f, f, f}, f, 1 << 16, 0, rule);
  }
  expect_reference(5);
}

TEST_P(ComputeMany, AllTriplesOf8BitsByEveryMode) {
  for (const auto& [f, rule] : combinations(formats_of_8_bits, every_rule())) {
    if (rule.nan != nan_policy::canonical) continue;
    add(operation::fma, {f, f, f}, f, by_effort(1 << 24, 1 << 16), 0, rule);
  }
  expect_reference(1);
}

TEST_P(ComputeMany, RandomOperandsByEveryRule) {
  const char* const asked = std::getenv("SAMEBITS_COMPUTE_CASES");
  const std::uint64_t wanted = asked != nullptr ? std::strtoull(asked, nullptr, 10)
                                                : by_effort<std::uint64_t>(500'000'000, 4 << 20);
  const std::int64_t size = by_effort(1 << 18, 1 << 12);
  constexpr format_id mixes[][4] = {
      {fp32, fp32, fp32, fp32}, {fp16, fp16, fp16, fp16}, {bf16, bf16, bf16, bf16},
      {e4m3, e4m3, e4m3, e4m3}, {e5m2, e5m2, e5m2, e5m2}, {fp16, bf16, fp32, e4m3},
      {e4m3, e5m2, fp32, fp32}, {bf16, bf16, bf16, fp32}, {e5m2, e5m2, fp16, fp16},
      {fp32, fp32, fp32, e5m2}, {fp32, e4m3, bf16, bf16}, {fp16, fp16, fp32, bf16}};
  const auto enough = [&] { return cases_.size() * static_cast<std::uint64_t>(size) >= wanted; };
  for (std::uint64_t round = 0; !enough(); ++round) {
    for (const auto& [mix, op, mode] :
         combinations(mixes, enumerators<operation>(), enumerators<rounding>())) {
      if (enough()) break;
      // Policies by turns: all of them meet every mode as rounds and operations go on.
      const auto turn = round + static_cast<std::uint64_t>(op) + static_cast<std::uint64_t>(mode);
      const auto policy = static_cast<overflow>(turn % enum_count<overflow>);
      const auto nan = turn / 3 % 2 == 0 ? nan_policy::canonical : nan_policy::preserve_sign;
      add(op, {mix[0], mix[1], mix[2]}, mix[3], size, size, {mode, policy, nan});
    }
  }
  expect_reference(1);
}

INSTANTIATE_TEST_SUITE_P(Backends, ComputeMany, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
