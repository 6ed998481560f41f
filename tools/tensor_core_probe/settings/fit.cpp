// Searches settings: tests each setting of the grid until an observation refutes it. If none is
// left, climbs from every row to a local maximum.
#include "tensor_core_probe/settings/fit.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <tuple>
#include <utility>

#include "backends/threads/tasks.hpp"
#include "tensor_core_probe/settings/setting.hpp"
#include "tensor_core_probe/settings/setting_grid.hpp"

namespace samebits::backends::tensor_cores {
namespace {

/// The observations, with operands decoded once for each treatment of subnormals.
class seen_results {
 public:
  seen_results(const shape& s, std::span<const observation> seen)
      : shape_(s), seen_(seen), products_(static_cast<std::size_t>(s.products)) {
    for (std::size_t how = 0; how < taken_.size(); ++how) {
      tensor_setting setting{};
      setting.subnormals = static_cast<subnormal_operands>(how);
      const numerics::accumulate_rule rule = rule_of(s, setting);
      for (const observation& o : seen) {
        for (std::size_t k = 0; k < products_; ++k) {
          taken_[how].a.push_back(
              numerics::tensor_operand_of(rule.a, rule.subnormal_exponent_a, o.x.a[k]));
          taken_[how].b.push_back(
              numerics::tensor_operand_of(rule.b, rule.subnormal_exponent_b, o.x.b[k]));
        }
      }
    }
  }

  [[nodiscard]] std::size_t size() const { return seen_.size(); }
  [[nodiscard]] const shape& of() const { return shape_; }

  /// Whether a rule reproduces observation i.
  [[nodiscard]] bool explained_by(const numerics::accumulate_rule& rule, subnormal_operands how,
                                  std::size_t i) const {
    const operands& of = taken_[static_cast<std::size_t>(how)];
    const std::size_t at = i * products_;
    return numerics::accumulate(rule, &of.a[at], &of.b[at], rule.products, seen_[i].x.c) ==
           seen_[i].d;
  }
  /// How many observations, out of every stride-th, a setting reproduces.
  [[nodiscard]] std::uint64_t explained(const tensor_setting& s, std::size_t stride) const {
    const numerics::accumulate_rule rule = rule_of(shape_, s);
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < size(); i += stride) {
      count += explained_by(rule, s.subnormals, i) ? 1u : 0u;
    }
    return count;
  }

 private:
  struct operands {
    std::vector<numerics::tensor_operand> a, b;
  };

  shape shape_;
  std::span<const observation> seen_;
  std::size_t products_;
  std::array<operands, 3> taken_;
};

/// Tests settings against the observations. Observations that refuted earlier settings move to the
/// front.
class refuter {
 public:
  explicit refuter(const seen_results& seen) : seen_(seen) {
    constexpr std::size_t step = 257;  // neighbours share a family: take one of each first
    for (std::size_t first = 0; first < step; ++first) {
      for (std::size_t i = first; i < seen.size(); i += step) order_.push_back(i);
    }
  }
  /// Whether an observation refutes a setting.
  bool refutes(const tensor_setting& s) {
    const numerics::accumulate_rule rule = rule_of(seen_.of(), s);
    for (std::size_t p = 0; p < order_.size(); ++p) {
      if (seen_.explained_by(rule, s.subnormals, order_[p])) continue;
      std::swap(order_[p], order_[p / 2]);
      return true;
    }
    return false;
  }

 private:
  const seen_results& seen_;
  std::vector<std::size_t> order_;
};

/// All settings that reproduce every observation, in grid order, and the number of settings tested.
std::pair<std::vector<tensor_setting>, std::uint64_t> exact_settings(const setting_grid& all,
                                                                     const seen_results& seen) {
  constexpr std::uint64_t chunk = 8192;
  const std::uint64_t size = all.size();
  std::atomic<std::uint64_t> next = 0;
  std::atomic<std::uint64_t> tried = 0;
  std::mutex lock;
  std::vector<std::uint64_t> found;
  const auto work = [&] {
    refuter asked(seen);
    for (std::uint64_t begin = 0; (begin = next.fetch_add(chunk)) < size;) {
      std::uint64_t count = 0;
      for (std::uint64_t i = begin; i < std::min(begin + chunk, size); ++i) {
        const tensor_setting s = all.at(i);
        if (!all.is_distinct(s)) continue;
        ++count;
        if (asked.refutes(s)) continue;
        const std::lock_guard guard(lock);
        found.push_back(i);
      }
      tried += count;
    }
  };
  for_each_task(thread_count(0), [&](std::int64_t) { work(); });
  std::sort(found.begin(), found.end());
  std::vector<tensor_setting> settings;
  settings.reserve(found.size());
  for (const std::uint64_t i : found) settings.push_back(all.at(i));
  return {std::move(settings), tried};
}

/// Hill climbing: changes one parameter at a time while that reproduces more observations.
tensor_fit climbed(const setting_grid& all, const seen_results& seen, tensor_setting s,
                   std::size_t stride) {
  std::uint64_t explained = seen.explained(s, stride);
  for (bool better = true; better;) {
    better = false;
    for (int a = 0; a < axis_count; ++a) {
      for (const int value : all.values(static_cast<axis>(a))) {
        tensor_setting changed = s;
        row_of(static_cast<axis>(a)).set(changed, value);
        if (changed == s || !all.is_distinct(changed)) continue;
        const std::uint64_t now = seen.explained(changed, stride);
        if (now <= explained) continue;
        s = changed;
        explained = now;
        better = true;
      }
    }
  }
  return {s, explained};
}

/// The best settings that hill climbing from every row finds, at most 3.
std::vector<tensor_fit> best_settings(const setting_grid& all, const seen_results& seen,
                                      const tensor_setting& row) {
  std::vector<tensor_setting> starts = {row};
  const shape& s = seen.of();
  for (int i = 0; i < tensor_row_count; ++i) {
    const tensor_setting start =
        setting_of(numerics::accumulate_rule_of(tensor_row(i), s.a, s.b, s.result, s.products));
    if (std::find(starts.begin(), starts.end(), start) == starts.end()) starts.push_back(start);
  }
  constexpr std::size_t enough = 1024;
  const std::size_t stride = std::max<std::size_t>(1, seen.size() / enough);
  std::vector<tensor_fit> best;
  for (const tensor_setting& start : starts) {
    tensor_fit found = climbed(all, seen, start, stride);
    found.explained = seen.explained(found.setting, 1);
    const auto same = [&](const tensor_fit& f) { return f.setting == found.setting; };
    if (std::none_of(best.begin(), best.end(), same)) best.push_back(found);
  }
  std::stable_sort(best.begin(), best.end(), [](const tensor_fit& x, const tensor_fit& y) {
    return x.explained > y.explained;
  });
  constexpr std::size_t shown = 3;
  if (best.size() > shown) best.resize(shown);
  return best;
}

}  // namespace

fit_result fit(const shape& s, const tensor_setting& row, std::span<const observation> seen) {
  const setting_grid all(s);
  const seen_results results(s, seen);
  fit_result found{};
  found.row_explains = results.explained(row, 1);
  std::tie(found.exact, found.tried) = exact_settings(all, results);
  std::stable_sort(found.exact.begin(), found.exact.end(),
                   [&](const tensor_setting& x, const tensor_setting& y) {
                     return setting_grid::distance(x, row) < setting_grid::distance(y, row);
                   });
  if (found.exact.empty()) found.best = best_settings(all, results, row);
  return found;
}

std::string open_parameters(std::span<const tensor_setting> settings) {
  std::string text;
  std::size_t combinations = 1;
  for (int i = 0; i < axis_count; ++i) {
    const axis_row& row = row_of(static_cast<axis>(i));
    std::vector<int> values;
    for (const tensor_setting& s : settings) values.push_back(row.value(s));
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    if (values.size() < 2) continue;
    combinations *= values.size();
    text += (text.empty() ? "" : "; ") + std::string(row.name) + " ";
    for (std::size_t from = 0; from < values.size();) {
      std::size_t to = from;  // last of consecutive integers
      while (row.is_number && to + 1 < values.size() && values[to + 1] == values[to] + 1) ++to;
      text += (from == 0 ? "" : ", ") + row.text(values[from]);
      if (to != from) text += " to " + row.text(values[to]);
      from = to + 1;
    }
  }
  if (!text.empty() && combinations != settings.size()) text += "; not in every combination";
  return text;
}

}  // namespace samebits::backends::tensor_cores
