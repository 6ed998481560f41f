// The part of `fpinspect verify` that compares a GPU's tensor cores with their model.
#pragma once

#include "fpinspect/cli/command.hpp"
#include "samebits/core/tensor_unit.hpp"

namespace fpinspect {

class tensor_core_check {
 public:
  void add_options(option_list& add);
  void add_rules(option_list& add);
  /// Writes the report. Returns the number of results that differ.
  [[nodiscard]] std::uint64_t verify(const session& s) const;

 private:
  std::optional<tensor_unit> unit_;
  std::string instruction_;
  std::uint64_t cases_ = 0;  ///< of each family
  std::uint64_t seed_ = 0;
  std::string record_;   ///< file to write
  std::string results_;  ///< file to read instead of running on a GPU
};

/// "WHAT: 12 results compared, 1 differs", painted. `noun` is what differs, if that is not results.
std::string verify_summary(std::string_view what, std::uint64_t compared, std::uint64_t differed,
                           const terminal& term, std::string_view noun = "");

}  // namespace fpinspect
