// Compares the fast values of the rule `exact` with the definition, on all 2^32 operands:
//
//   fast_values_sweep FUNCTION|all [THREADS] [FIRST_BLOCK BLOCKS_STEP]
//
// A decided fast value must lie between the same two neighbouring numbers of 25 significant bits as
// the definition's result, and on neither. No rounding to nearest then tells one from the other,
// because all ties of the destinations have at most 25 significant bits. Or both lie beyond all
// destinations: they are at least 2^128, or below 2^-150, in magnitude.
//
// Prints one line per function; exits 1 if a decided fast value differs.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backends/simd/functions/exact/reals_avx2.hpp"
#include "exhaustive/sweep_program.hpp"
#include "numerics/functions/exact_function.hpp"
#include "numerics/functions/fast_values.hpp"

namespace samebits {
namespace {

namespace real = numerics::real;
using avx2::reals;
using namespace support;
using real::exact_function;

constexpr std::uint64_t block_size = 1 << 16;

/// Number of lanes set.
std::uint64_t count_of(avx2::real_mask m) {
  return static_cast<std::uint64_t>(
      __builtin_popcount(static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(m.v)))));
}

/// Whether both numbers have one sign and lie beyond the largest or smallest numbers of fp32.
avx2::real_mask are_beyond(reals a, reals b) {
  const reals size_a = real::magnitude(a), size_b = real::magnitude(b);
  const reals huge = real::bits_of(0x1p128), tiny = real::bits_of(0x1p-150);
  const avx2::real_mask one_sign = (a >> std::uint64_t{63}) == (b >> std::uint64_t{63});
  const avx2::real_mask large = !((size_a < huge) | (size_b < huge));
  return one_sign & (large | ((size_a < tiny) & (size_b < tiny)));
}

template <exact_function F>
void compare_block(std::uint32_t first, comparison_counts& t) {
  constexpr std::uint64_t grid = 28;  // bits below the last of 25
  for (std::uint32_t i = 0; i < block_size; i += reals::count) {
    const std::array<std::uint32_t, 4> x = {first + i, first + i + 1, first + i + 2, first + i + 3};
    const reals operand = reals::load_binary32(x.data());
    const reals fast = real::fast_value<F>(operand);
    const reals defined = real::value_at<F>(operand);
    const avx2::real_mask decided = real::is_fast_operand<F>(operand) & real::is_decided(fast);
    const avx2::real_mask on_grid = (defined & reals((1u << grid) - 1)) == reals(std::uint64_t{0});
    const avx2::real_mask same = ((fast >> grid) == (defined >> grid)) & !on_grid;
    const avx2::real_mask beyond = are_beyond(fast, defined);
    t.compared += count_of(decided);
    t.differing += count_of(decided & !(same | beyond));
  }
}

template <exact_function F>
bool run(std::string_view label, std::uint64_t threads, std::uint64_t first_block,
         std::uint64_t step) {
  const comparison_counts t = sum_on_threads(threads, [&](std::uint64_t thread) {
    comparison_counts mine;
    for (std::uint64_t block = first_block + thread * step; block < 65536;
         block += step * threads) {
      compare_block<F>(static_cast<std::uint32_t>(block * block_size), mine);
    }
    return mine;
  });
  return all_agree("decided fast values of " + std::string(label), t);
}

std::optional<bool> agrees(const command_line& words) {
  if (words.empty() || words.size() > 4) return std::nullopt;
  const std::uint64_t threads = words.number(1, 1), step = words.number(3, 1);
  if (threads == 0 || step == 0) return std::nullopt;
  bool good = true;
  for (int i = 0; i < enum_count<function>; ++i) {
    const auto f = real::find_exact(static_cast<function>(i), false);
    const std::string_view label = name(static_cast<function>(i));
    if (!f || (words[0] != "all" && words[0] != label)) continue;
    real::with_function(*f, [&]<exact_function F>() {
      if constexpr (real::has_fast_value(F)) {
        good = run<F>(label, threads, words.number(2), step) && good;
      }
    });
  }
  return good;
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  return samebits::support::run_program(
      argc, argv, "fast_values_sweep FUNCTION|all [THREADS] [FIRST_BLOCK BLOCKS_STEP]",
      samebits::agrees);
}
