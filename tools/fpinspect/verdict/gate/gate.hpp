// The conditions of --fail-if, and what they found.
#pragma once

#include "fpinspect/output/table.hpp"
#include "fpinspect/quantize/quantize_source.hpp"
#include "fpinspect/verdict/gate/condition.hpp"

namespace fpinspect {

/// The value of a figure, and what a share is a share of.
struct figure_value {
  figure_value(double number) : value(number) {}
  figure_value(std::uint64_t part, std::uint64_t all)
      : value(static_cast<double>(part)), whole(static_cast<double>(all)) {}

  double value;
  double whole = 1;
};

/// A figure that conditions may name, and its value in a result.
template <class Result>
struct figure : figure_spec {
  row_function<figure_value, Result> of;
};

/// The conditions of --fail-if, and the tensors for which they hold.
class gate {
 public:
  explicit gate(const std::vector<condition>& conditions = {}) {
    for (const condition& c : conditions) outcomes_.push_back({c});
  }
  /// @throws usage_error  if a text is not a condition on one of the figures
  template <class Result>
  gate(const std::vector<std::string>& texts, std::span<const figure<Result>> figures)
      : gate(conditions_argument(texts, std::vector<figure_spec>(figures.begin(), figures.end()))) {
  }

  /// Notes the value of a figure of one tensor.
  ///
  /// @param subject  the format that the figure is about, or empty
  /// @param tensor  its name in text
  void add(std::string_view figure, std::string_view subject, const std::string& tensor,
           const figure_value& found);
  /// Notes the values of all figures of a result.
  template <class Result>
  void add(std::span<const figure<Result>> figures, std::string_view subject,
           const std::string& tensor, const Result& result) {
    for (const figure<Result>& one : figures) add(one.name, subject, tensor, one.of(result));
  }
  /// Notes the NaN and infinities of a tensor of `all` elements: nan, inf.
  void add_nonfinite(const std::string& tensor, std::uint64_t nan, std::uint64_t inf,
                     std::uint64_t all) {
    add("nan", "", tensor, {nan, all});
    add("inf", "", tensor, {inf, all});
  }

  /// Notes a tensor whose figures cannot be had. It fails whatever the conditions are.
  void add_failure(const std::string& tensor, const std::string& reason) {
    if (outcomes_.empty()) return;
    if (incomparable_++ == 0) first_incomparable_ = cat(tensor, ": ", reason);
  }

  /// The member `fail_if`.
  [[nodiscard]] json_value json() const;

  /// @throws check_failed  if a condition holds for any tensor
  void check() const;

 private:
  /// A condition, and what is known of it.
  struct outcome {
    condition of;
    std::uint64_t failed = 0;  ///< number of times that it held
    std::string worst = {};    ///< the tensor farthest from the limit
    double value = 0;          ///< its figure, in the unit of the limit
  };

  std::vector<outcome> outcomes_;
  std::uint64_t incomparable_ = 0;
  std::string first_incomparable_;
};

/// The figures of add_nonfinite().
inline constexpr std::array nonfinite_figures = {figure_spec{"nan", "%"}, figure_spec{"inf", "%"}};

/// What a quantization did. Without a ratio every `sqnr<X` holds, unless the quantization is exact or
/// there are no elements.
struct quantization {
  quantize_statistics statistics;
  sqnr ratio;

  [[nodiscard]] std::uint64_t nonzero() const {  // and finite
    return statistics.elements - statistics.zeros - statistics.nan - statistics.inf;
  }
};
inline constexpr figure<quantization> quantization_figures[] = {
    {{"sqnr", "dB", true}, [](auto& q) { return q.ratio.level(); }},
    {{"underflow", "%", true},
     [](auto& q) { return figure_value(q.statistics.underflowed, q.nonzero()); }},
    {{"saturated", "%", true},
     [](auto& q) { return figure_value(q.statistics.saturated, q.nonzero()); }},
};

/// The conditions of `quantize` and of `tensor --recipes`: the figures of a quantization, nan and inf.
/// @param of_recipes  whether a recipe may stand before a figure: 'MXFP8_TE.sqnr<30dB'
/// @throws usage_error  for any other condition, or an unknown recipe
gate quantization_gate(const std::vector<std::string>& texts, bool of_recipes);

}  // namespace fpinspect
