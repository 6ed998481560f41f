// Operands of tensor core instructions, by family, that tell the parameters of an instruction
// apart.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tensor_core_probe/device.hpp"

namespace samebits::backends::tensor_cores {

/// Number of families of random operands; cases.cpp has their table. No family depends on the
/// parameters that a search must find.
inline constexpr int family_count = 20;
std::string_view family_name(int family);

/// One case: the codes of a row of A, of a column of B, and of C.
struct case_codes {
  std::array<std::uint32_t, max_products> a;
  std::array<std::uint32_t, max_products> b;
  std::uint32_t c;
};

inline decoded_operands decoded(const numerics::accumulate_rule& rule, const case_codes& x) {
  return decoded(
      rule, [&](int k) { return x.a[static_cast<std::size_t>(k)]; },
      [&](int k) { return x.b[static_cast<std::size_t>(k)]; });
}
/// The result that a rule predicts for a case.
inline std::uint32_t result_of(const numerics::accumulate_rule& rule, const case_codes& x) {
  return result_of(rule, decoded(rule, x), x.c);
}

/// A deterministic stream of random words (splitmix64), the same on every machine.
class word_stream {
 public:
  explicit word_stream(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  /// 0 <= result < count
  int below(int count) { return static_cast<int>(next() % static_cast<std::uint64_t>(count)); }
  /// -reach <= result <= reach
  int around(int reach) { return below(2 * reach + 1) - reach; }
  bool coin() { return below(2) == 1; }

 private:
  std::uint64_t state_;
};

/// A random case of a family, for operands of that shape.
case_codes draw_case(const shape& s, int family, word_stream& words);

}  // namespace samebits::backends::tensor_cores
