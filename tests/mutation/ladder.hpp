// The values of a format of at most 8 bits in order, and what lies beside each of its codes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "oracle/exact.hpp"
#include "oracle/format_table.hpp"

namespace samebits::mutation {

/// Finite codes by value, -0 before +0, from the oracle's decoding of every code.
class ladder {
 public:
  explicit ladder(const oracle::format& f) : format_(f) {
    for (std::uint64_t code = 0; code < std::uint64_t{1} << f.code_bits; ++code) {
      const oracle::exact_value x = oracle::decode(f, code);
      if (x.kind == oracle::value_kind::finite) steps_.push_back({code, oracle::rational_of(x)});
    }
    std::stable_sort(steps_.begin(), steps_.end(), [](const step& a, const step& b) {
      return a.value != b.value ? a.value < b.value : a.code > b.code;  // of zeros 80 before 00
    });
  }

  /// What contract §5 says lies above: the next value; above the largest Inf, else NaN, else
  /// itself. Nothing lies above Inf, and a NaN gives the canonical one.
  [[nodiscard]] std::uint64_t above(std::uint64_t code) const { return beside(code, +1); }
  /// And below; e8m0's smallest value stays.
  [[nodiscard]] std::uint64_t below(std::uint64_t code) const { return beside(code, -1); }

 private:
  struct step {
    std::uint64_t code;
    oracle::cpp_rational value;
  };

  [[nodiscard]] std::uint64_t beside(std::uint64_t code, int direction) const {
    const oracle::exact_value x = oracle::decode(format_, code);
    if (x.kind == oracle::value_kind::nan) return *format_.canonical_nan;
    const auto size = static_cast<std::ptrdiff_t>(steps_.size());
    if (x.kind == oracle::value_kind::infinite) {
      if (x.negative != (direction > 0)) return code;
      return steps_[static_cast<std::size_t>(direction > 0 ? 0 : size - 1)].code;
    }
    std::ptrdiff_t at = 0;
    while (steps_[static_cast<std::size_t>(at)].code != code) ++at;
    const bool zero = steps_[static_cast<std::size_t>(at)].value == 0;
    do {
      at += direction;
    } while (zero && at >= 0 && at < size && steps_[static_cast<std::size_t>(at)].value == 0);
    if (at >= 0 && at < size) return steps_[static_cast<std::size_t>(at)].code;
    if (format_.sign_bits == 0 && direction < 0) return code;
    const std::uint64_t sign = direction < 0 ? std::uint64_t{1} << (format_.code_bits - 1) : 0;
    if (format_.infinity) return *format_.infinity | sign;
    return format_.canonical_nan ? *format_.canonical_nan : code;
  }

  const oracle::format& format_;
  std::vector<step> steps_;
};

}  // namespace samebits::mutation
