// Comparison of one call: the oracle and every tested backend compute it; results are compared byte
// by byte.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/verify/inputs.hpp"
#include "backends/verify/subject.hpp"
#include "backends/verify/verify.hpp"

namespace samebits::backends::verification {

/// The layout of a matrix in a buffer.
struct placement {
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t row_stride;  ///< elements
  std::int64_t col_stride;  ///< elements
  std::size_t shift = 0;    ///< bytes before the first element

  [[nodiscard]] static placement dense(std::int64_t rows, std::int64_t cols) {
    return {rows, cols, cols, 1};
  }
  /// Bytes from the start of the buffer to the end of the last element.
  [[nodiscard]] std::size_t bytes(format_id format) const;
  [[nodiscard]] std::size_t offset(format_id format, std::int64_t row, std::int64_t col) const;
};

inline constexpr int rule_count =
    enum_count<rounding> * enum_count<overflow> * enum_count<nan_policy>;

/// The results of one backend under one heading.
struct comparison_result {
  std::uint64_t compared = 0;
  std::uint64_t differed = 0;
  std::string first_difference;
  std::bitset<format_count> sources;
  std::bitset<format_count> targets;
  std::bitset<rule_count> rules;
};

/// One conversion of the input that is compared.
struct comparison {
  format_id to;
  cast_rule rule;
  placement in;
  placement out;
  random_stream random = {};
  /// If given, backends make the call a second time, split into these blocks.
  std::span<const block> blocks = {};
};

/// Compares the tested backends with an oracle.
class comparer {
 public:
  comparer(std::span<const backend* const> tested, const backend& reference, int threads);

  [[nodiscard]] std::size_t count() const { return subjects_.size(); }
  [[nodiscard]] const subject& at(std::size_t i) const { return subjects_[i]; }
  [[nodiscard]] int threads() const { return threads_; }

  /// Sets the input of the following comparisons; `input` must outlive them.
  void set_input(const code_buffer& input);

  /// Adds the results of backend i to per_backend[i] if it supports the conversion.
  void compare(const comparison& c, std::span<comparison_result> per_backend);

 private:
  [[nodiscard]] convert_call call_of(const comparison& c) const;
  void run_reference(const convert_call& call, const comparison& c);
  void add(comparison_result& t, const comparison& c, std::span<const std::byte> got) const;

  std::vector<subject> subjects_;
  const backend* reference_;
  int threads_;
  const code_buffer* input_ = nullptr;
  std::vector<std::byte> expected_;
  unsigned char filling_ = 0;
};

}  // namespace samebits::backends::verification
