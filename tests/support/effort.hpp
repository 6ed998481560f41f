// How much of a large space one run covers: all of it, or a part where instrumentation costs much.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace samebits::support {

#if defined(__SANITIZE_ADDRESS__)
#define SAMEBITS_TEST_INSTRUMENTED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define SAMEBITS_TEST_INSTRUMENTED 1
#endif
#endif

#if defined(SAMEBITS_TEST_INSTRUMENTED)
inline constexpr std::uint64_t effort_divisor = 16;
#else
inline constexpr std::uint64_t effort_divisor = 1;
#endif

/// Whether SAMEBITS_TEST_EFFORT=smallest is in the environment. Tests on a GPU then draw few cases
/// and small arrays, which still run every kernel and every branch of it, so that compute-sanitizer
/// can watch whole programs. Throws std::invalid_argument for other values than `smallest`, `full`.
inline bool smallest_effort() {
  static const bool asked = [] {
    const char* const text = std::getenv("SAMEBITS_TEST_EFFORT");
    const std::string_view effort = text == nullptr ? "full" : text;
    if (effort == "smallest" || effort == "full") return effort == "smallest";
    throw std::invalid_argument("SAMEBITS_TEST_EFFORT: expected smallest or full, got '" +
                                std::string(effort) + "'");
  }();
  return asked;
}

/// With how many seeds each planted error must be found: 10, or SAMEBITS_TEST_SEEDS.
inline int planted_seeds() {
  const char* const text = std::getenv("SAMEBITS_TEST_SEEDS");
  return text == nullptr ? 10 : std::stoi(text);
}

/// A size or a count of this run.
template <class T>
T by_effort(T full, std::type_identity_t<T> smallest) {
  return smallest_effort() ? smallest : full;
}

/// Under the smallest effort every `step`-th of a test's cases is run, otherwise each. A prime step
/// that divides no count of the test's loops leaves out no value of any loop.
class thinned_cases {
 public:
  explicit thinned_cases(std::uint64_t step) : step_(by_effort<std::uint64_t>(1, step)) {}
  /// Whether the next case is left out.
  bool leaves_out() { return number_++ % step_ != 0; }

 private:
  std::uint64_t step_;
  std::uint64_t number_ = 0;
};

}  // namespace samebits::support
