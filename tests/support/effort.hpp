// How much of a large space one run covers: all of it, or a part where instrumentation costs much.
#pragma once

#include <cstdint>

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

}  // namespace samebits::support
