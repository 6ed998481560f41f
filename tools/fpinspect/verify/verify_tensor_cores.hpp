// The part of `fpinspect verify` that compares a GPU's tensor cores with their model.
#pragma once

#include "fpinspect/cli/command.hpp"
#include "samebits/core/tensor_unit.hpp"

namespace fpinspect {

class tensor_core_check {
  option_list& add;
  std::optional<tensor_unit>& unit_ =
      add.optional_value("--unit", enumerator_argument<tensor_unit>,
                         "Only this unit's instructions, see `fpinspect units`");
  std::string& instruction_ = add.text("--instruction", "Only this one, such as wgmma_e4m3");
  std::uint64_t& cases_ = add.value("--cases", integer(1, std::uint64_t{1} << 30),
                                    "Of each of 20 families; a case makes 128 results", "8192");
  std::uint64_t& seed_ = add.value("--seed", integer(), "Of the operands", "0");
  std::string& record_ = add.text("--record", "FILE.txt to write some of the results to");
  std::string& results_ = add.text("--results", "Check a file that --record wrote, without a GPU");

 public:
  explicit tensor_core_check(option_list& list) : add(list.group("Tensor cores")) { add.group(""); }

  void add_rules();
  /// Writes the report. Returns the number of results that differ.
  [[nodiscard]] std::uint64_t verify(const session& s) const;
};

/// "WHAT: 12 results compared, 1 differs", painted. `noun` is what differs, if that is not results.
std::string verify_summary(std::string_view what, std::uint64_t compared, std::uint64_t differed,
                           const terminal& term, std::string_view noun = "");

}  // namespace fpinspect
