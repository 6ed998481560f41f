// The comparison of two files, tensor by tensor, with or without an original of both.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fpinspect/cli/options.hpp"
#include "fpinspect/compare/compared_file.hpp"
#include "fpinspect/compare/difference.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"
#include "samebits/backend.hpp"

namespace fpinspect {

/// What A and B make of one tensor of the original.
struct original_figures {
  difference_figures a;  ///< the original against A
  difference_figures b;  ///< the original against B
  closeness closer;
};

/// One tensor of both files.
struct compared_pair {
  std::string name;  ///< in text
  const compared_tensor* a = nullptr;
  const compared_tensor* b = nullptr;
  const compared_tensor* original = nullptr;     ///< null without --original
  std::string reason = {};                       ///< why it is not compared; empty if it is
  difference_figures figures = {};               ///< A against B, without an original
  std::optional<original_figures> against = {};  ///< with an original
};

struct comparison {
  std::vector<compared_pair> pairs;    ///< in the order of A
  std::vector<std::string> only_in_a;  ///< names in text
  std::vector<std::string> only_in_b;

  /// The pairs that are compared and differ, largest difference first.
  [[nodiscard]] std::vector<const compared_pair*> different() const;
};

/// Pairs tensors of the same name, or the only tensors of both files whatever their names are.
/// Compares the values of each pair.
///
/// @param original  null, or the file that A and B are compared with
/// @param where  threads >= 1; the figures depend on neither backend nor threads
/// @throws file_error  if there is no pair
comparison compare_files(const compared_file& a, const compared_file& b,
                         const compared_file* original, const samebits::executor& where);

/// The report on standard output.
std::string comparison_text(const comparison& all, const compare_arguments& arguments,
                            const terminal& term);

/// Writes the members of the document except `schema` and `fail_if`.
void write_comparison_json(json_writer& json, const comparison& all,
                           const compare_arguments& arguments);

}  // namespace fpinspect
