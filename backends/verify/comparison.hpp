// Comparison of one call: the oracle and every tested backend make it; results are compared byte by
// byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/verify/call.hpp"
#include "backends/verify/inputs.hpp"
#include "backends/verify/subject.hpp"

namespace samebits::backends::verification {

/// The results of one backend under one heading.
struct tally {
  std::uint64_t compared = 0;
  std::uint64_t differed = 0;
  std::string first_difference;
  coverage covers;
};

/// Compares the tested backends with an oracle.
class comparer {
 public:
  comparer(std::span<const backend* const> tested, const backend& oracle, int threads);

  [[nodiscard]] std::size_t count() const { return subjects_.size(); }
  [[nodiscard]] std::string_view name(std::size_t i) const { return subjects_[i].tested().name; }
  [[nodiscard]] int threads() const { return threads_; }
  [[nodiscard]] const code_buffer& input() const { return *input_; }

  /// Sets the input of the following comparisons, and a second one that some calls read. Both must
  /// outlive the comparisons.
  void set_input(const code_buffer& input, const code_buffer* second = nullptr);

  /// Adds the results of backend i to per_backend[i] if both the backend and the oracle support the
  /// call.
  void compare(const checked_call& call, std::span<tally> per_backend);

 private:
  void add(tally& t, const checked_call& call, std::size_t result,
           std::span<const std::byte> got) const;

  std::vector<subject> subjects_;
  subject oracle_;
  int threads_;
  const code_buffer* input_ = nullptr;
  unsigned char filling_ = 0;
};

}  // namespace samebits::backends::verification
