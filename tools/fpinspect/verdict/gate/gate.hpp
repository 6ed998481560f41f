// The conditions of --fail-if, and what they found.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/verdict/gate/condition.hpp"

namespace fpinspect {

/// The conditions of --fail-if, and the tensors for which they hold.
class gate {
 public:
  explicit gate(std::vector<condition> conditions);

  [[nodiscard]] const std::vector<condition>& conditions() const { return conditions_; }
  [[nodiscard]] bool is_empty() const { return conditions_.empty(); }

  /// Notes the value of a figure of one tensor.
  ///
  /// @param subject  the format that the figure is about, or empty
  /// @param tensor  its name in text
  /// @param whole  what a share is a share of
  void add(std::string_view figure, std::string_view subject, const std::string& tensor,
           double value, double whole = 1);

  /// The same for `count` elements of `all`.
  void add_count(std::string_view figure, std::string_view subject, const std::string& tensor,
                 std::uint64_t count, std::uint64_t all) {
    add(figure, subject, tensor, static_cast<double>(count), static_cast<double>(all));
  }
  /// Notes the NaN and infinities of a tensor of `all` elements: nan, inf.
  void add_nonfinite(const std::string& tensor, std::uint64_t nan, std::uint64_t inf,
                     std::uint64_t all) {
    add_count("nan", "", tensor, nan, all);
    add_count("inf", "", tensor, inf, all);
  }

  /// Notes a tensor whose figures cannot be had. It fails whatever the conditions are.
  void add_failure(const std::string& tensor, const std::string& reason);

  /// Writes the member `fail_if`, a list.
  void write_json(json_writer& json) const;

  /// @throws check_failed  if a condition holds for any tensor
  void check() const;

 private:
  /// What is known of one condition.
  struct outcome {
    std::uint64_t failed = 0;  ///< number of times that it held
    std::string worst;         ///< the tensor farthest from the limit
    double value = 0;          ///< its figure, in the unit of the limit
  };

  std::vector<condition> conditions_;
  std::vector<outcome> outcomes_;
  std::uint64_t incomparable_ = 0;
  std::string first_incomparable_;
};

}  // namespace fpinspect
