// The comparison of two files, tensor by tensor, with or without an original of both.
#pragma once

#include "fpinspect/checkpoint/quantized_matrix.hpp"

namespace fpinspect {

/// An element by its index in C order, and a figure or both values.
struct found_difference {
  std::uint64_t index = 0;
  double a = 0;
  double b = 0;
};

/// Counts and sums over pairs of elements (a, b). Numbers are compared: -0 equals 0, and NaN equals
/// NaN whatever its bits are.
struct difference_figures {
  std::uint64_t count = 0;
  std::uint64_t differ = 0;
  std::optional<std::uint64_t> bits_differ;  ///< codes that differ, if both have one format
  std::uint64_t new_nan = 0;                 ///< b is NaN, a is not
  std::uint64_t new_inf = 0;                 ///< b is an infinity, a is not the same one
  std::uint64_t lost_nan = 0;                ///< a is NaN, b is not
  std::uint64_t lost_inf = 0;                ///< a is an infinity, b is not the same one
  std::uint64_t nonzero = 0;                 ///< a is finite and not zero
  std::uint64_t underflow = 0;               ///< of these, b is zero
  std::uint64_t paired = 0;                  ///< both are finite: the errors are over these pairs
  double max_error = 0;                      ///< largest |a - b|
  std::optional<found_difference> largest;   ///< the first pair with this error, if it is not 0
  std::optional<found_difference> first;     ///< the first pair that differs
  double sum_error = 0;                      ///< sum of |a - b|
  double signal = 0;                         ///< sum of a^2
  double noise = 0;                          ///< sum of (a - b)^2

  /// The distance of a and b in steps between neighbouring values of `ulp_format`, to which both
  /// are rounded. steps[0] counts distance 0, steps[k] counts 2^(k-1) to 2^k - 1.
  format_id ulp_format = format_id::fp32;
  std::uint64_t max_ulp = 0;
  std::array<std::uint64_t, 65> steps{};

  [[nodiscard]] double mean_error() const {
    return paired == 0 ? 0.0 : sum_error / static_cast<double>(paired);
  }
  /// "3 new NaN, 1 new Inf", empty if NaN and infinities are the same in both.
  [[nodiscard]] std::string specials() const;
  [[nodiscard]] sqnr ratio() const;
};

/// A tensor with values: its elements, or codes * scales in fp32.
struct compared_tensor {
  shown_tensor in;                                    ///< in its file; the codes of `made`
  std::shared_ptr<const quantized_matrix> made = {};  ///< null: the elements are the values

  /// The format that holds every value exactly.
  [[nodiscard]] format_id format() const { return made ? format_id::fp32 : in.format(); }
  /// Of the elements in text: "bf16", "U8"; empty if they have no values.
  [[nodiscard]] std::string_view type() const {
    if (made) return "codes x scales";
    return in.has_numbers() ? type_text(in.info, in.how) : "";
  }
  /// The codes of all elements, if they are in the file in place.
  [[nodiscard]] std::optional<std::span<const std::byte>> in_place() const {
    return made ? std::nullopt : in.view();
  }
  /// Reads elements [first, first + count) as codes of the format.
  void read(std::uint64_t first, std::uint64_t count, std::byte* out) const {
    return made ? made->read(first, count, out) : in.read(first, count, out);
  }
};

/// One side of a comparison.
struct compared_file {
  std::string input = {};  ///< the argument
  std::vector<compared_tensor> tensors = {};
};

/// Opens FILE, FILE#TENSOR, an index or a folder. Quantized matrices of checkpoints become their values
/// in fp32; `codes` and `scales` of a file that `quantize` wrote for one tensor become `values`.
///
/// @param names  names or patterns of tensors; empty: all
/// @param option  the name of `from` in errors
/// @param from  integers are codes of this format; empty: values
/// @throws usage_error  if `from` or `names` contradicts the file
/// @throws file_error  if a file cannot be read
compared_file open_compared(const std::string& input, const std::vector<std::string>& names,
                            std::string_view option, const std::string& from);

/// What A and B make of one tensor of the original.
struct original_figures {
  difference_figures a;        ///< the original against A
  difference_figures b;        ///< the original against B
  std::uint64_t closer_a = 0;  ///< elements of which A is closer to the original
  std::uint64_t closer_b = 0;
};

/// One tensor of both files.
struct compared_pair {
  std::string name;  ///< in text
  const compared_tensor* a = nullptr;
  const compared_tensor* b = nullptr;
  const compared_tensor* original = nullptr;     ///< null without --original
  std::string reason = {};                       ///< why it is not compared; empty if it is
  std::optional<std::string> rule = {};          ///< with --explain, of a pair that differs
  difference_figures figures = {};               ///< A against B, without an original
  std::optional<original_figures> against = {};  ///< with an original
};

/// The figures of a pair of equal codes, which need the elements of one tensor only. Returns whether
/// the pair is one whose codes are in place.
bool measure_equal(compared_pair& pair, const executor& where);
/// The figures of any pair.
void measure(compared_pair& pair, const executor& where);

struct comparison {
  std::vector<compared_pair> pairs;    ///< in the order of A
  std::vector<std::string> only_in_a;  ///< names in text
  std::vector<std::string> only_in_b;
};

/// Pairs tensors of the same name, or the only tensors of both files whatever their names are.
/// Compares the values of each pair.
///
/// @param original  null, or the file that A and B are compared with
/// @param where  threads >= 1; the figures depend on neither backend nor threads
/// @throws file_error  if there is no pair
comparison compare_files(const compared_file& a, const compared_file& b,
                         const compared_file* original, const executor& where);

/// "B is A rounded to bf16 (nearest_even)" or "B is A by recipe TE_BLOCK_2D to e4m3", or with A and B
/// exchanged; empty if no known rule makes all values of one from the other's. Bits are compared, but
/// every NaN is the same.
///
/// Cost: memory of about five times both tensors.
/// @param pair  two tensors that are compared
std::string rule_between(const compared_pair& pair, const executor& where);

}  // namespace fpinspect
