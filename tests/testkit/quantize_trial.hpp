// Runs one call of a quantizer under test, compares its results with quantize(), and keeps the
// results for the explanation of a failure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "samebits/testkit/quantize.hpp"

namespace samebits::testkit {

/// A dense row-major matrix of codes.
struct code_matrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<std::uint64_t> codes;
};

/// Codes and scales of a quantized matrix, row-major.
struct quantized_codes {
  std::vector<std::uint64_t> codes;
  std::vector<std::uint64_t> scales;
};

/// One call that the kit has seen.
struct seen_quantize_call {
  code_matrix in;
  quantized_codes got;
  quantized_codes expected;
};

/// Rows and columns of one tile of a matrix, in elements. 0 becomes the extent of the matrix.
matrix_shape tile_extent(const code_matrix& in, const tile_shape& tile);

/// Returns what samebits::quantize() gives on backend "reference".
quantized_codes quantized_by(const quantizer_under_test& quantizer, const code_matrix& in);

/// Errors of one call; at most one of wrong, trouble and thrown is set.
struct quantize_verdict {
  std::optional<quantize_counterexample> wrong;
  std::size_t wrong_codes = 0;
  std::size_t wrong_scales = 0;
  std::string trouble;
  std::string thrown;

  [[nodiscard]] bool failed() const {
    return wrong.has_value() || !trouble.empty() || !thrown.empty();
  }
};

/// Runs calls of one quantizer.
class quantize_runner {
 public:
  /// @throws invalid_argument if function and quantizer do not match.
  quantize_runner(const quantizer_under_test& quantizer, const raw_quantizer& function);

  [[nodiscard]] const quantizer_under_test& quantizer() const { return quantizer_; }
  [[nodiscard]] std::uint64_t compared() const { return compared_; }
  /// Returns the calls so far whose results were compared; at most max_seen elements.
  [[nodiscard]] const std::vector<seen_quantize_call>& seen() const { return seen_; }

  quantize_verdict run(const code_matrix& in);

 private:
  static constexpr std::size_t max_seen = std::size_t{1} << 21;  // elements

  quantize_verdict compared(const seen_quantize_call& call);

  quantizer_under_test quantizer_;
  raw_quantizer function_;
  std::uint64_t compared_ = 0;
  std::vector<seen_quantize_call> seen_;
  std::size_t seen_elements_ = 0;
};

}  // namespace samebits::testkit
