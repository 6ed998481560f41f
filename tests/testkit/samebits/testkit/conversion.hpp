// Proves a user's conversion kernel: compares every bit with the reference and the oracle.
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
#include "samebits/testkit/domain.hpp"

namespace samebits::testkit {

/// Specification of the function under test: out[i] is the code of in[i], rounded once.
struct conversion_under_test {
  format_id from = format_id::fp32;
  format_id to = format_id::e4m3;
  cast_rule rule = {};
  random_stream random = {};  ///< read only by stochastic; element i has index random.offset + i
  nan_result nan = nan_result::any;  ///< which codes are right where a NaN is expected
  input_domain domain = {};          ///< inputs that the function supports; default: every code
};

/// Amount of tests. The defaults take well under a second for a conversion to 8 bits.
struct check_effort {
  int batches = 64;                ///< batches of random codes; one call of the function each
  std::int64_t batch_size = 4096;  ///< max number of codes in a batch, >= 1
  /// Sweep over fp32 sources, run last: codes 0, n, 2n, ... of all 2^32. 1: all codes; 0: no sweep.
  std::uint64_t sweep_stride = 0;
  std::uint64_t seed = 0;  ///< of the random codes; 0: RC_PARAMS="seed=N" if set, else a new seed
  /// If set: another model of the conversion, which the reference must agree with on every input:
  /// oracle_code of samebits/testkit/oracle.hpp. It takes a code and its position in the call.
  std::uint64_t (*oracle)(const conversion_under_test& conversion, std::uint64_t code,
                          std::uint64_t position) = nullptr;
};

/// The first wrong element of the smallest failing call that was found.
struct counterexample {
  std::uint64_t input = 0;  ///< code of the source format
  std::uint64_t got = 0;
  std::uint64_t expected = 0;
  bool is_tie = false;        ///< the input lies halfway between two codes of the target's grid
  std::int64_t position = 0;  ///< position of the element in the call
  std::int64_t size = 0;      ///< number of elements of the call
  int in_offset = 0;          ///< elements from a 256-byte border to in[0]
  int out_offset = 0;         ///< elements from a 256-byte border to out[0]
};

/// Result of a check. `Failure` describes what is wrong.
template <class Failure>
class result_of_check {
 public:
  result_of_check(std::uint64_t compared, std::string message, std::optional<Failure> failure)
      : compared_(compared), message_(std::move(message)), failure_(failure) {}

  /// Returns true if every result was right and nothing else was written.
  explicit operator bool() const { return message_.empty(); }
  /// Returns an empty text on success. On failure: a description of the error, the fields of input,
  /// result and expected result, the usual errors that explain all results, and how to repeat the
  /// case.
  [[nodiscard]] const std::string& message() const { return message_; }
  /// Returns the number of results compared, up to the end or the first wrong one; shrinking does
  /// not count.
  [[nodiscard]] std::uint64_t compared() const { return compared_; }
  /// Returns what is wrong; empty on success, and if the function threw or wrote elsewhere.
  [[nodiscard]] const std::optional<Failure>& failure() const { return failure_; }

 private:
  std::uint64_t compared_;
  std::string message_;
  std::optional<Failure> failure_;
};
using check_result = result_of_check<counterexample>;

/// One call of a function under test: two blocks of memory, and the positions of the `count`
/// elements in them. Both blocks start at 256-byte borders and include guard bytes. An adapter to
/// another memory copies both blocks there and back.
struct raw_call {
  std::span<std::byte> in_memory;
  std::span<std::byte> out_memory;
  std::size_t in_at = 0;   ///< offset of in[0] in in_memory, in bytes
  std::size_t out_at = 0;  ///< offset of out[0] in out_memory, in bytes
  std::int64_t count = 0;
};

/// A type-erased function under test; `in_bytes` and `out_bytes` are its element sizes.
struct raw_function {
  std::function<void(const raw_call&)> call;
  std::size_t in_bytes = 0;
  std::size_t out_bytes = 0;
};

/// Runs a function on many inputs, and compares every code with samebits' reference.
///
/// Stages, in this order, until a call fails:
/// - Edges of the conversion. Sources of up to 16 bits: every code. In a deterministic mode, fp32 and
///   tf32 to at most 19 bits, and fp64 to 8 bits: two codes around every change of the result, and
///   NaNs of every kind. All others: random edges, ties and specials of both formats.
/// - Stochastic rounding only: codes at the border of the decision for the random bits of their own
///   index.
/// - Sizes from 0 to around vector, block and page borders, with both arrays 0 to 16 elements
///   behind a 256-byte border, and guards around the output.
/// - Random batches.
/// - The sweep, if `effort` requests a sweep.
///
/// A failing call is shrunk by running smaller calls: fewer elements, simpler codes, no offsets.
/// All results seen are compared with a table of usual errors. The message names the errors that
/// predict every result. An exception of the function is a failure and ends the check.
///
/// @param conversion  formats, rule, random stream, NaN policy and domain
/// @param function  the function under test
/// @param effort  amount of tests
/// @returns the number of compared results, and the failure
/// @throws invalid_argument if the function's element sizes are not those of the formats, if the
///   effort is out of range, if random.bits is not in 1..32, or if no code of the domain is found.
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

/// A callable void(std::span<const In>, std::span<Out>) with fixed argument types.
template <class Function>
concept host_kernel = requires {
  typename detail::host_signature<detail::signature_of<Function>>::in;
};

/// Calls check_raw() with a host function.
///
/// @param conversion  formats, rule and random stream
/// @param function  void(std::span<const In>, std::span<Out>). In and Out are trivially copyable
///   types of the formats' storage sizes: std::uint8_t and float as well as samebits::e4m3.
/// @param effort  amount of tests
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
