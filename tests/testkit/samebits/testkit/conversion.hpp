// Proves a conversion kernel of one's own: every bit against the reference and the oracle.
//
//   const auto result = samebits::testkit::check_conversion(
//       {.from = samebits::format_id::fp32, .to = samebits::format_id::e4m3},
//       [](std::span<const float> in, std::span<std::uint8_t> out) { my_kernel(in, out); });
//   EXPECT_TRUE(result) << result.message();
//
// Plain C++20: includes neither GoogleTest, RapidCheck nor Boost. samebits/testkit/cuda.hpp adds
// the same call for a kernel launcher.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::testkit {

/// What the function under test claims to compute: out[i] is the code of in[i], rounded once.
struct conversion_under_test {
  format_id from = format_id::fp32;
  format_id to = format_id::e4m3;
  cast_rule rule = {};
  random_stream random = {};  ///< stochastic only: element i has index random.offset + i
};

/// How much is tried. The defaults take well under a second for a conversion to 8 bits.
struct check_effort {
  int batches = 64;                ///< of random patterns; each is one call of the function
  std::int64_t batch_size = 4096;  ///< the most codes of a batch, >= 1
  /// fp32 sources: the codes 0, n, 2n, ... of all 2^32 on top; 1 is all of them, 0 none.
  std::uint64_t sweep_stride = 0;
  std::uint64_t seed = 0;  ///< of the random patterns; 0: RC_PARAMS="seed=N", else a new one
};

/// The smallest call found that goes wrong, and its first wrong element.
struct counterexample {
  std::uint64_t input = 0;  ///< source code
  std::uint64_t got = 0;
  std::uint64_t expected = 0;
  bool is_tie = false;        ///< the input lies halfway between two codes of the target's grid
  std::int64_t position = 0;  ///< of the element in the call
  std::int64_t size = 0;      ///< elements of the call
  int in_offset = 0;          ///< elements from a 256-byte border to in[0]
  int out_offset = 0;         ///< elements from a 256-byte border to out[0]
};

/// What a check found.
class check_result {
 public:
  check_result(std::uint64_t compared, std::string message, std::optional<counterexample> failure)
      : compared_(compared), message_(std::move(message)), failure_(failure) {}

  /// True if every result was right and nothing else was written.
  explicit operator bool() const { return message_.empty(); }
  /// Empty on success; else what went wrong, with the fields of input, got and expected and a
  /// command that repeats the case.
  [[nodiscard]] const std::string& message() const { return message_; }
  /// Results compared up to the end or the first failure, shrinking left out.
  [[nodiscard]] std::uint64_t compared() const { return compared_; }
  /// The wrong element; empty on success, and where the function threw or wrote elsewhere.
  [[nodiscard]] const std::optional<counterexample>& failure() const { return failure_; }

 private:
  std::uint64_t compared_;
  std::string message_;
  std::optional<counterexample> failure_;
};

/// One call of a function under test: the memory on both sides, guard bytes included, starting at
/// 256-byte borders, and where the `count` elements lie in it. An adapter to another memory copies
/// both sides there and back.
struct raw_call {
  std::span<std::byte> in_memory;
  std::span<std::byte> out_memory;
  std::size_t in_at = 0;   ///< bytes
  std::size_t out_at = 0;  ///< bytes
  std::int64_t count = 0;
};

/// A function under test behind one type; `in_bytes` and `out_bytes` are its element sizes.
struct raw_function {
  std::function<void(const raw_call&)> call;
  std::size_t in_bytes = 0;
  std::size_t out_bytes = 0;
};

/// Runs the function over
///  - the edges of the conversion: every source code where that is at most 16 bits; from fp32 in
///    a deterministic mode two codes around every change of the result and NaNs of every kind;
///    else drawn edges, ties and specials of both formats;
///  - sizes from 0 to around vector, block and page borders, at all distances of 0 to 16 elements
///    from a 256-byte border, with guards around the output;
///  - random batches, by RapidCheck;
///  - the sweep, if `effort` asks for it,
/// and compares every code with samebits' reference and with the exact oracle. A failing call is
/// shrunk by running smaller ones: fewer elements, simpler codes, no offsets.
///
/// What the function throws is a failure and ends the check. Throws invalid_argument for element
/// sizes that are not those of the formats, an effort out of range, or a bad random.bits.
check_result check_raw(const conversion_under_test& conversion, const raw_function& function,
                       const check_effort& effort = {});

namespace detail {

template <class T>
struct host_signature;
template <class In, class Out>
struct host_signature<std::function<void(std::span<const In>, std::span<Out>)>> {
  using in = In;
  using out = Out;
};

template <class Function>
using signature_of = decltype(std::function{std::declval<Function>()});

}  // namespace detail

/// A callable void(std::span<const In>, std::span<Out>) whose argument types are fixed.
template <class Function>
concept host_kernel = requires {
  typename detail::host_signature<detail::signature_of<Function>>::in;
};

/// check_raw over a host function. In and Out are any trivially copyable types of the formats'
/// storage sizes: std::uint8_t and float as well as samebits::e4m3.
template <host_kernel Function>
check_result check_conversion(const conversion_under_test& conversion, Function function,
                              const check_effort& effort = {}) {
  using signature = detail::host_signature<detail::signature_of<Function>>;
  using in = typename signature::in;
  using out = typename signature::out;
  static_assert(std::is_trivially_copyable_v<in> && std::is_trivially_copyable_v<out>);
  const auto call = [&function](const raw_call& c) {
    const auto count = static_cast<std::size_t>(c.count);
    function(std::span(reinterpret_cast<const in*>(c.in_memory.data() + c.in_at), count),
             std::span(reinterpret_cast<out*>(c.out_memory.data() + c.out_at), count));
  };
  return check_raw(conversion, {call, sizeof(in), sizeof(out)}, effort);
}

}  // namespace samebits::testkit
