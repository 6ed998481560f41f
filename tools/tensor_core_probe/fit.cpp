// Searches rules: tests each combination of parameters until a result refutes it. If none is
// left, climbs from every row to a local maximum.
#include "tensor_core_probe/fit.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "backends/threads/tasks.hpp"

namespace samebits::backends::tensor_cores {
namespace {

/// The results, with operands decoded for one treatment of subnormals at a time.
class decoded_results {
 public:
  explicit decoded_results(std::span<const tensor_core_result> seen) : seen_(seen) {}

  [[nodiscard]] std::size_t size() const { return seen_.size(); }
  /// Whether a rule reproduces result i.
  bool explained_by(const accumulate_rule& rule, std::size_t i) {
    const std::pair exponents = {rule.subnormal_exponent_a, rule.subnormal_exponent_b};
    if (exponents != exponents_ || operands_.empty()) {
      operands_.clear();
      for (const tensor_core_result& r : seen_) operands_.push_back(decoded(rule, r.x));
      exponents_ = exponents;
    }
    return result_of(rule, operands_[i], seen_[i].x.c) == seen_[i].d;
  }
  /// How many results, out of every stride-th, a rule reproduces.
  std::uint64_t explained(const accumulate_rule& rule, std::size_t stride) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < size(); i += stride) count += explained_by(rule, i) ? 1u : 0u;
    return count;
  }

 private:
  std::span<const tensor_core_result> seen_;
  std::vector<decoded_operands> operands_;
  std::pair<int, int> exponents_;
};

/// Tests rules against the results. Results that refuted earlier rules move to the front.
class refuter {
 public:
  explicit refuter(std::span<const tensor_core_result> seen) : seen_(seen) {
    constexpr std::size_t step = 257;  // neighbours share a family: take one of each first
    for (std::size_t first = 0; first < step; ++first) {
      for (std::size_t i = first; i < seen.size(); i += step) order_.push_back(i);
    }
  }
  /// Whether a result refutes a rule.
  bool refutes(const accumulate_rule& rule) {
    for (std::size_t p = 0; p < order_.size(); ++p) {
      if (seen_.explained_by(rule, order_[p])) continue;
      std::swap(order_[p], order_[p / 2]);
      return true;
    }
    return false;
  }

 private:
  decoded_results seen_;
  std::vector<std::size_t> order_;
};

/// Combination number i of the values; the first parameter runs fastest.
accumulate_rule combination(accumulate_rule row, const parameter_values& values, std::uint64_t i) {
  for (std::size_t p = 0; p < values.size(); ++p) {
    parameters[p].set(row, values[p][i % values[p].size()]);
    i /= values[p].size();
  }
  return row;
}

/// Hill climbing: changes one parameter at a time while that reproduces more results.
tensor_fit climbed(accumulate_rule rule, decoded_results& seen) {
  constexpr std::size_t enough = 1024;
  const std::size_t stride = std::max<std::size_t>(1, seen.size() / enough);
  const parameter_values values = values_to_try(rule);
  std::uint64_t most = seen.explained(rule, stride);
  for (bool better = true; better;) {
    better = false;
    for (std::size_t p = 0; p < values.size(); ++p) {
      for (const int value : values[p]) {
        accumulate_rule changed = rule;
        parameters[p].set(changed, value);
        if (!is_distinct(changed)) continue;
        const std::uint64_t now = seen.explained(changed, stride);
        if (now <= most) continue;
        rule = changed;
        most = now;
        better = true;
      }
    }
  }
  return {rule, seen.explained(rule, 1)};
}

/// Whether a list has a rule with the same parameters.
template <class List, class Rule = std::identity>
bool contains(const List& list, const accumulate_rule& rule, Rule of = {}) {
  const auto is_same = [&](const accumulate_rule& other) { return distance(other, rule)[0] == 0; };
  return std::ranges::any_of(list, is_same, of);
}

/// The best rules that hill climbing from every row finds, at most 3.
std::vector<tensor_fit> best_rules(const accumulate_rule& row,
                                   std::span<const tensor_core_result> seen) {
  const shape& s = seen.front().operands;
  std::vector<accumulate_rule> starts = {row};
  for (int i = 0; i < tensor_row_count; ++i) {
    const auto start = numerics::accumulate_rule_of(tensor_row(i), s.a, s.b, s.result, s.products);
    if (!contains(starts, start)) starts.push_back(start);
  }
  decoded_results results(seen);
  std::vector<tensor_fit> best;
  for (const accumulate_rule& start : starts) {
    const tensor_fit found = climbed(start, results);
    if (!contains(best, found.rule, &tensor_fit::rule)) best.push_back(found);
  }
  std::ranges::stable_sort(best, std::ranges::greater(), &tensor_fit::explained);
  constexpr std::size_t shown = 3;
  if (best.size() > shown) best.resize(shown);
  return best;
}

}  // namespace

fit_result fit(const accumulate_rule& row, std::span<const tensor_core_result> seen) {
  const parameter_values values = values_to_try(row);
  std::uint64_t size = 1;
  for (const auto& v : values) size *= v.size();
  const auto workers = static_cast<std::uint64_t>(thread_count(0));
  std::vector<std::uint64_t> tried(workers);
  std::vector<std::vector<std::uint64_t>> found(workers);  // numbers of combinations
  for_each_task(thread_count(0), [&](std::int64_t worker) {
    const auto w = static_cast<std::size_t>(worker);
    refuter asked(seen);
    for (std::uint64_t i = w; i < size; i += workers) {
      const accumulate_rule rule = combination(row, values, i);
      if (!is_distinct(rule)) continue;
      ++tried[w];
      if (!asked.refutes(rule)) found[w].push_back(i);
    }
  });
  std::set<std::uint64_t> numbers;
  for (const auto& of_worker : found) numbers.insert(of_worker.begin(), of_worker.end());
  fit_result result{seen.size(),
                    decoded_results(seen).explained(row, 1),
                    std::accumulate(tried.begin(), tried.end(), std::uint64_t{}),
                    {},
                    {},
                    {}};
  for (const std::uint64_t i : numbers) result.exact.push_back(combination(row, values, i));
  std::ranges::stable_sort(result.exact, {}, [&](const auto& rule) { return distance(rule, row); });
  if (result.exact.empty()) {
    result.best = best_rules(row, seen);
  } else {
    result.best = {{result.exact.front(), seen.size()}};
    result.open = open_parameters(result.exact);
  }
  return result;
}

}  // namespace samebits::backends::tensor_cores
