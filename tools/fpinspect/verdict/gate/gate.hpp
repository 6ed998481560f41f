// The conditions of --fail-if, and what they found.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fpinspect/output/json.hpp"
#include "fpinspect/verdict/gate/condition.hpp"

namespace fpinspect {

/// The conditions of --fail-if, and the tensors for which they hold.
class gate {
 public:
  explicit gate(std::vector<condition> conditions = {});

  [[nodiscard]] const std::vector<condition>& conditions() const { return conditions_; }
  [[nodiscard]] bool is_empty() const { return conditions_.empty(); }

  /// Notes the value of a figure of one tensor.
  ///
  /// @param subject  the format that the figure is about, or empty
  /// @param tensor  its name in text
  /// @param whole  what a share is a share of
  void add(std::string_view figure, std::string_view subject, const std::string& tensor,
           double value, double whole = 1);
  /// Notes a share of elements.
  void add_share(std::string_view figure, std::string_view subject, const std::string& tensor,
                 std::uint64_t part, std::uint64_t whole) {
    add(figure, subject, tensor, static_cast<double>(part), static_cast<double>(whole));
  }
  /// Notes the NaN and infinities of a tensor of `all` elements: nan, inf.
  void add_nonfinite(const std::string& tensor, std::uint64_t nan, std::uint64_t inf,
                     std::uint64_t all) {
    add_share("nan", "", tensor, nan, all);
    add_share("inf", "", tensor, inf, all);
  }

  /// Notes a tensor whose figures cannot be had. It fails whatever the conditions are.
  void add_failure(const std::string& tensor, const std::string& reason);

  /// The member `fail_if`.
  [[nodiscard]] json_value json() const;

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
