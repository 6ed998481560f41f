// Statements of tutorials that the bits refute, each with the computation that refutes it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fpinspect {

/// The result of a computation about a statement.
struct claim_evidence {
  bool refuted;
  std::vector<std::string> lines;
  std::vector<std::pair<std::string, double>> figures;  ///< the numbers of the lines
};

struct claim {
  std::string_view name;
  std::string_view statement;
  std::string_view source;
  claim_evidence (*check)();
};

std::span<const claim> claims();

}  // namespace fpinspect
