// Exact percentiles: implementation.
#include "fpinspect/tensors/meters/percentiles.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace fpinspect {
namespace {

constexpr int digit_bits = 16;
constexpr std::uint64_t sign = std::uint64_t{1} << 63;

/// A key with the order of the numbers: the bits of binary64, all flipped if the number is
/// negative, else with the sign bit flipped.
std::uint64_t key_of(double number) {
  const auto bits = std::bit_cast<std::uint64_t>(number == 0 ? 0.0 : number);
  return (bits & sign) != 0 ? ~bits : bits ^ sign;
}

double number_at(std::uint64_t key) {
  return std::bit_cast<double>((key & sign) != 0 ? key ^ sign : ~key);
}

/// Bits of the key that differ among the numbers of a format: sign, exponent and mantissa.
int key_bits(samebits::format_id format) {
  constexpr int sign_and_exponent = 12;
  const bool is_fp64 = format == samebits::format_id::fp64;
  return is_fp64 ? 64 : sign_and_exponent + samebits::spec_of(format).mantissa_bits;
}

/// The position of a percentile among `all` > 0 sorted numbers, from 0.
std::uint64_t rank_of(int percentage, std::uint64_t all) {
  const auto percent = static_cast<std::uint64_t>(percentage);
  const std::uint64_t whole = all / 100 * percent;  // all * percent / 100 without overflow
  const std::uint64_t rank = whole + (all % 100 * percent + 99) / 100;
  return std::max<std::uint64_t>(rank, 1) - 1;
}

}  // namespace

percentile_finder::percentile_finder(samebits::format_id format, std::uint64_t count)
    : few_(count <= std::uint64_t{1} << 16), bits_left_(key_bits(format)) {
  if (!few_) regroup();
}

void percentile_finder::regroup() {
  groups_.clear();
  wanted_.assign(1u << digit_bits, bits_known_ == 0 ? 1 : 0);
  for (const target& t : targets_) {
    const bool there = std::any_of(groups_.begin(), groups_.end(),
                                   [&](const group& g) { return g.prefix == t.prefix; });
    if (there) continue;
    groups_.push_back({t.prefix, std::vector<std::uint64_t>(1u << digit_bits)});
    if (bits_known_ != 0) wanted_[t.prefix >> (bits_known_ - digit_bits)] = 1;
  }
}

void percentile_finder::add(std::span<const double> numbers) {
  if (few_) {
    for (const double number : numbers) {
      if (std::isfinite(number)) kept_.push_back(number);
    }
    return;
  }
  const int shift = 64 - digit_bits - bits_known_;
  for (const double number : numbers) {
    if (!std::isfinite(number)) continue;
    const std::uint64_t key = key_of(number);
    if (wanted_[key >> (64 - digit_bits)] == 0) continue;
    const std::uint64_t start = key >> shift;
    for (group& g : groups_) {
      if (start >> digit_bits == g.prefix) ++g.counts[start & ((1u << digit_bits) - 1)];
    }
  }
}

void percentile_finder::set_ranks() {
  const auto& counts = groups_.front().counts;
  const auto all = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  if (all == 0) {
    bits_left_ = 0;
    groups_.clear();
  }
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    targets_[i].rank = rank_of(percentages[i], all);
  }
}

void percentile_finder::next_pass() {
  if (few_) {
    bits_left_ = 0;
    return;
  }
  if (bits_known_ == 0) set_ranks();
  if (groups_.empty()) return;
  for (target& t : targets_) {
    const auto& counts = std::find_if(groups_.begin(), groups_.end(), [&](const group& g) {
                           return g.prefix == t.prefix;
                         })->counts;
    std::uint64_t digit = 0;
    for (; t.rank >= counts[digit]; ++digit) t.rank -= counts[digit];
    t.prefix = t.prefix << digit_bits | digit;
  }
  bits_known_ += digit_bits;
  bits_left_ -= digit_bits;
  regroup();
}

std::vector<double> percentile_finder::selected() const {
  std::vector<double> values;
  if (kept_.empty()) return values;
  std::vector<double> numbers = kept_;
  auto first = numbers.begin();  // all numbers before it are no larger than those from it on
  for (const int percentage : percentages) {
    const auto at =
        numbers.begin() + static_cast<std::ptrdiff_t>(rank_of(percentage, numbers.size()));
    std::nth_element(first, at, numbers.end());
    values.push_back(*at + 0.0);  // a zero is +0
    first = at;
  }
  return values;
}

std::vector<double> percentile_finder::values() const {
  if (few_) return selected();
  std::vector<double> values;
  if (groups_.empty()) return values;
  const int unknown = 64 - bits_known_;
  for (const target& t : targets_) {
    // The unknown bits are 0 in binary64, so they are 1 in the keys of negative numbers.
    std::uint64_t key = unknown == 0 ? t.prefix : t.prefix << unknown;
    if ((key & sign) == 0 && unknown != 0) key |= (std::uint64_t{1} << unknown) - 1;
    values.push_back(number_at(key));
  }
  return values;
}

}  // namespace fpinspect
