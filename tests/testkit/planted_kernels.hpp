// Kernels of the kit's own tests: correct kernels, and kernels with a planted error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <vector>

#include "samebits/scalar.hpp"
#include "samebits/testkit/conversion.hpp"

namespace samebits::testkit {

/// One call of a kernel: all input codes, and the code of each element.
using codes = std::vector<std::uint64_t>;
/// Returns the result of element i; nothing if the kernel does not write the element.
using planted_element = std::function<std::optional<std::uint64_t>(
    const conversion_under_test& conversion, const codes& in, std::size_t i)>;

inline random_bits random_of(const conversion_under_test& c, std::size_t i, int k) {
  return {random_word(c.random.seed, c.random.stream, c.random.offset + i, k), k};
}

inline std::uint64_t right(const conversion_under_test& c, const codes& in, std::size_t i) {
  return convert_code(c.from, c.to, in[i], c.rule, random_of(c, i, c.random.bits)).code;
}

/// Returns a kernel that converts by another rule than the tested one.
inline planted_element other_rule(const cast_rule& rule) {
  return [rule](const conversion_under_test& c, const codes& in, std::size_t i) {
    return convert_code(c.from, c.to, in[i], rule).code;
  };
}

/// The results of a call; nothing for elements that are not written.
using results = std::vector<std::optional<std::uint64_t>>;

/// A type-erased kernel for any pair of formats: call(in) returns the results.
inline raw_function kernel_of(const conversion_under_test& c,
                              const std::function<results(const codes& in)>& call) {
  const auto in_bytes = static_cast<std::size_t>(storage_bytes(c.from));
  const auto out_bytes = static_cast<std::size_t>(storage_bytes(c.to));
  const auto run = [=](const raw_call& r) {
    codes in(static_cast<std::size_t>(r.count));
    for (std::size_t i = 0; i < in.size(); ++i) {
      std::memcpy(&in[i], r.in_memory.data() + r.in_at + i * in_bytes, in_bytes);
    }
    const results out = call(in);
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (out[i]) std::memcpy(r.out_memory.data() + r.out_at + i * out_bytes, &*out[i], out_bytes);
    }
  };
  return {run, in_bytes, out_bytes};
}
inline raw_function kernel_of(const conversion_under_test& c, const planted_element& element) {
  return kernel_of(c, [=](const codes& in) {
    results out;
    for (std::size_t i = 0; i < in.size(); ++i) out.push_back(element(c, in, i));
    return out;
  });
}

inline conversion_under_test pair(format_id from, format_id to, const cast_rule& rule = {},
                                  nan_result nan = nan_result::any) {
  return {.from = from, .to = to, .rule = rule, .nan = nan};
}
inline conversion_under_test random_pair(format_id from, format_id to, int k) {
  return {.from = from,
          .to = to,
          .rule = {rounding::stochastic, overflow::saturate},
          .random = {.seed = 9, .stream = 2, .offset = 1000, .bits = k}};
}

inline constexpr cast_rule saturating{rounding::nearest_even, overflow::saturate};

}  // namespace samebits::testkit
