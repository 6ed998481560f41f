// What the programs of this folder share: counts, threads, the command line and the exit status.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "samebits/error.hpp"
#include "support/effort.hpp"

namespace samebits::support {

struct comparison_counts {
  std::uint64_t compared = 0;
  std::uint64_t differing = 0;

  comparison_counts& operator+=(const comparison_counts& other) {
    compared += other.compared;
    differing += other.differing;
    return *this;
  }
};

/// Prints "WHAT: N results, M differ"; whether none differs.
inline bool all_agree(const std::string& what, const comparison_counts& counts) {
  std::printf("%s: %llu results, %llu differ\n", what.c_str(),
              static_cast<unsigned long long>(counts.compared),
              static_cast<unsigned long long>(counts.differing));
  std::fflush(stdout);
  return counts.differing == 0;
}

/// part(0) + ... + part(threads - 1), each on a thread of its own.
template <class Part>
auto sum_on_threads(std::uint64_t threads, const Part& part) {
  std::vector<decltype(part(std::uint64_t{}))> parts(threads);
  {
    std::vector<std::jthread> running;
    for (std::uint64_t i = 0; i < threads; ++i) {
      running.emplace_back([&, i] { parts[i] = part(i); });
    }
  }
  for (std::uint64_t i = 1; i < threads; ++i) parts[0] += parts[i];
  return parts[0];
}

/// The words behind the program's name.
class command_line : public std::vector<std::string> {
 public:
  using std::vector<std::string>::vector;

  /// The number in a place; `otherwise` where there is none.
  [[nodiscard]] std::uint64_t number(std::size_t place, std::uint64_t otherwise = 0) const {
    if (place >= size()) return otherwise;
    const std::string& word = (*this)[place];
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} || end != word.data() + word.size()) {
      throw std::invalid_argument("'" + word + "' is no number");
    }
    return value;
  }
};

/// Runs agrees(command_line), which says whether all results agree, or nothing for a bad command
/// line. The exit status is 1 if results differ, 2 for a bad command line and 77 if this machine does
/// not support a backend.
template <class Agrees>
int run_program(int argc, char** argv, const char* usage, const Agrees& agrees) {
  try {
    const std::optional<bool> agreed = agrees(command_line(argv + 1, argv + argc));
    if (agreed) return *agreed ? 0 : 1;
    std::fprintf(stderr, "usage: %s\n", usage);
  } catch (const unsupported& e) {
    std::printf("%s\n", e.what());
    return 77;  // skipped
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\nusage: %s\n", e.what(), usage);
  }
  return 2;
}

/// Every how many inputs a sweep takes: SAMEBITS_SWEEP_STRIDE, or what is usual.
inline std::uint64_t sweep_stride(std::uint64_t usual) {
  const char* const asked = std::getenv("SAMEBITS_SWEEP_STRIDE");
  return asked != nullptr ? std::stoull(asked) : usual * effort_divisor;
}

}  // namespace samebits::support
