// The passes of statistics_pass: implementation.
#include "backends/reference/statistics/element_passes.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <vector>

#include "backends/reference/statistics/statistics_worker.hpp"
#include "backends/threads/interruption.hpp"
#include "backends/threads/tasks.hpp"
#include "samebits/reductions.hpp"

namespace samebits::backends {
namespace {

constexpr auto chunk_size = static_cast<std::int64_t>(statistics_chunk);
/// The chunks of a batch share their threads; their sums wait for each other in memory.
constexpr std::int64_t chunks_at_once = 1024;

/// The power of two by which elements are multiplied before they are added and squared: 0 if amax is
/// 0 or in [2^-500, 2^500), else the one that brings amax into [1, 2).
int sum_log2_for(double amax) {
  const bool squares_fit = amax == 0 || (amax >= 0x1p-500 && amax < 0x1p500);
  return squares_fit ? 0 : -std::ilogb(amax);
}

/// The data of a target format, computed once in a process.
const cast_target& target_of(format_id format) {
  static const std::vector<cast_target> targets = [] {
    std::vector<cast_target> all;
    for (int i = 0; i < format_count; ++i) all.emplace_back(format_at(i));
    return all;
  }();
  return targets[static_cast<std::size_t>(format)];
}

/// What a pass computes besides percentiles: everything that needs only the elements; sums of the
/// elements times a power of two; sums of deviations from the mean.
enum class stage : std::uint8_t { elements, scaled_sums, deviations, percentiles, done };

/// Inputs of sums.
enum input : std::uint8_t { plain, squared, magnitude, deviation, inputs };
/// Sums over a chunk, which is a subtree.
using chunk_sums = std::array<double, inputs>;

/// The effect of a cast on all elements. Sums are trees over chunks, of which only the last one may
/// be partial.
struct total_effect {
  static constexpr std::uint64_t cast_effect::*counts[] = {
      &cast_effect::underflow, &cast_effect::subnormal, &cast_effect::overflow,
      &cast_effect::to_inf,    &cast_effect::to_nan,    &cast_effect::to_max,
      &cast_effect::changed};
  static constexpr double cast_effect::*sums[] = {&cast_effect::signal, &cast_effect::noise,
                                                  &cast_effect::saturated_signal,
                                                  &cast_effect::saturated_noise};

  void add(const cast_effect& chunk) {
    for (const auto count : counts) total.*count += chunk.*count;
    for (std::size_t i = 0; i < trees.size(); ++i) trees[i].add(chunk.*sums[i]);
  }
  [[nodiscard]] cast_effect result() const {
    cast_effect all = total;
    for (std::size_t i = 0; i < trees.size(); ++i) all.*sums[i] = trees[i].value();
    return all;
  }

  cast_effect total;
  std::array<tree_sum, std::size(sums)> trees;
};

/// Value is double for elements of fp64, else float.
template <class Value>
class passes final : public element_passes {
 public:
  passes(const statistics_request& request, const matrix_shape& shape, const executor& where)
      : request_(request),
        shape_(shape),
        effects_(request.casts.size()),
        percentiles_(request.format),
        rows_(request.row_amax ? static_cast<std::size_t>(shape.rows) : 0, -1) {
    const std::int64_t chunks = (size() + chunk_size - 1) / chunk_size;
    const std::int64_t threads = std::clamp<std::int64_t>(chunks, 1, thread_count(where.threads));
    const auto columns = request.column_amax ? static_cast<std::size_t>(shape.cols) : 0;
    for (std::int64_t i = 0; i < threads; ++i) {
      workers_.push_back(std::make_unique<worker>(where.backend, columns));
    }
    for (const format_id to : request.casts) targets_.push_back(target_of(to));
    format = request.format;
    begin_pass(stage::elements);
  }

  void add(const const_matrix_view& v) override {
    const std::int64_t count = v.rows * v.cols;
    for (std::int64_t at = 0, part = 0; at < count; at += part) {
      const auto waiting = static_cast<std::int64_t>(waiting_.size());
      const std::int64_t left = count - at;
      const std::int64_t whole = left == missing ? left : left / chunk_size * chunk_size;
      const bool waits = waiting != 0 || whole == 0;
      part = waits ? std::min(left, chunk_size - waiting)
                   : std::min(whole, chunks_at_once * chunk_size);
      missing -= part;
      if (!waits) {
        add_chunks(v, at, part);
        continue;
      }
      const std::span<const Value> more = workers_.front()->load(v, at, part);
      waiting_.insert(waiting_.end(), more.begin(), more.end());
      if (waiting + part != chunk_size && missing != 0) continue;
      add_chunks(view_of(waiting_), 0, waiting + part);
      waiting_.clear();
    }
  }

  bool next_pass() override {
    if (searches()) finish_percentiles();
    stage next = stage::percentiles;
    if (stage_ == stage::elements) {
      finish_elements();
      const int log2 = sum_log2_for(result_.amax.value_or(0));
      if (log2 != 0 && (wants_sum() || request_.l1_norm)) {
        sum_log2_ = log2;
        begin_pass(stage::scaled_sums);
        return true;
      }
    }
    if (stage_ <= stage::scaled_sums) {
      finish_sums();
      if (request_.std && result_.finite() != 0) next = stage::deviations;
    }
    if (stage_ == stage::deviations) {
      const double variance = sums_[deviation].value() / static_cast<double>(result_.finite());
      result_.std = std::ldexp(std::sqrt(variance), -sum_log2_);
    }
    if (next == stage::percentiles && !searches()) next = stage::done;
    begin_pass(next);
    return !done;
  }

  [[nodiscard]] cast_statistics result() const override { return result_; }

 private:
  using worker = statistics_worker<Value>;
  using chunk = std::span<const Value>;

  [[nodiscard]] std::int64_t size() const { return shape_.rows * shape_.cols; }
  [[nodiscard]] bool wants_sum() const { return request_.sums || request_.std; }
  [[nodiscard]] bool searches() const {
    return request_.percentiles && size() > few_numbers && !percentiles_.done();
  }

  void begin_pass(stage next) {
    stage_ = next;
    missing = next == stage::done ? 0 : size();
    measured_ = 0;
    done = next == stage::done;
    sums_ = {};
    if (!searches()) return;
    for (const auto& one : workers_) one->counters.assign(percentiles_.counters(), 0);
  }

  /// Adds the elements [first, first + count) of a view: whole chunks, or the last ones of the matrix.
  void add_chunks(const const_matrix_view& v, std::int64_t first, std::int64_t count) {
    const std::int64_t chunks = (count + chunk_size - 1) / chunk_size;
    const std::size_t casts = targets_.size();
    std::vector<chunk_sums> sums(static_cast<std::size_t>(chunks));
    std::vector<cast_effect> effects(stage_ == stage::elements ? sums.size() * casts : 0);
    std::atomic<std::int64_t> next = 0;
    interruption interrupt;
    const auto threads = std::min(chunks, static_cast<std::int64_t>(workers_.size()));
    for_each_task(threads, [&](std::int64_t thread) {
      worker& own = *workers_[static_cast<std::size_t>(thread)];
      for (std::int64_t i = next++; i < chunks; i = next++) {
        interrupt.poll();
        const std::int64_t at = i * chunk_size;
        const auto place = static_cast<std::size_t>(i);
        measure(own, static_cast<std::uint64_t>(measured_ + at),
                own.load(v, first + at, std::min(chunk_size, count - at)), sums[place],
                effects.empty() ? std::span<cast_effect>()
                                : std::span(effects).subspan(place * casts, casts));
      }
    });
    measured_ += count;
    for (const chunk_sums& one : sums) {
      for (std::size_t i = 0; i < inputs; ++i) sums_[i].add(one[i]);
    }
    for (std::size_t i = 0; i < effects.size(); ++i) effects_[i % casts].add(effects[i]);
  }

  void measure(worker& own, std::uint64_t first, chunk elements, chunk_sums& sums,
               std::span<cast_effect> effects) {
    if (searches()) percentiles_.count(elements, own.counters);
    if (stage_ == stage::elements) measure_elements(own, first, elements, sums, effects);
    if (stage_ == stage::scaled_sums) add_sums(own, elements, false, sums);
    if (stage_ == stage::deviations) {
      sums[deviation] =
          own.tree.root_of_finite(elements, result_.finite() == result_.count, sum_log2_,
                                  [this](double x) { return square_of(x - scaled_mean_); });
    }
  }

  void measure_elements(worker& own, std::uint64_t first, chunk elements, chunk_sums& sums,
                        std::span<cast_effect> effects) {
    const chunk_range range = range_of(elements);
    own.range.combine(range);
    if (!range.all_finite()) {
      const auto found = std::find_if_not(elements.begin(), elements.end(), is_finite<Value>);
      const auto index = static_cast<std::uint64_t>(found - elements.begin());
      own.first_nonfinite = std::min(own.first_nonfinite, first + index);
    }
    if (request_.percentiles && size() <= few_numbers) {
      result_.percentiles = select_percentiles(elements);
    }
    if (request_.binades) own.binades.add(elements);
    if (request_.row_amax || request_.column_amax) {
      add_channels(first, static_cast<std::size_t>(shape_.cols), elements, rows_, own.columns);
    }
    add_sums(own, elements, range.all_finite(), sums);
    if (effects.empty()) return;
    if (request_.scale_log2 == 0) {
      return measure_casts(own, elements, range, sums[squared], effects);
    }
    own.with_products(elements, request_.scale_log2, [&](auto products) {
      const chunk_range of_products = range_of(products);
      const double squares =
          own.tree.root_of_finite(products, of_products.all_finite(), 0, square_of);
      measure_casts(own, products, of_products, squares, effects);
    });
  }

  void add_sums(worker& own, chunk elements, bool all_finite, chunk_sums& sums) {
    const auto root = [&](const auto& f) {
      return own.tree.root_of_finite(elements, all_finite, sum_log2_, f);
    };
    const bool for_casts = !targets_.empty() && request_.scale_log2 == 0;
    if (wants_sum()) sums[plain] = root([](double x) { return x; });
    if (request_.sums || for_casts) sums[squared] = root([](double x) { return square_of(x); });
    if (request_.l1_norm) sums[magnitude] = root([](double x) { return std::fabs(x); });
  }

  template <class Exact>
  void measure_casts(worker& own, std::span<const Exact> exact, const chunk_range& range,
                     double squares, std::span<cast_effect> effects) {
    const auto effect = [&](const cast_target& to, overflow policy) {
      return effect_of(to, exact, own.rounded(to.format, exact, policy), range, squares, own.tree);
    };
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      cast_effect& result = effects[i] = effect(targets_[i], overflow::ieee);
      result.saturated_signal = result.signal;
      result.saturated_noise = result.noise;
      if (result.to_inf + result.to_nan == 0) continue;
      const cast_effect saturated = effect(targets_[i], overflow::saturate);
      result.saturated_signal = saturated.signal;
      result.saturated_noise = saturated.noise;
    }
  }

  /// The results of the first pass.
  void finish_elements() {
    worker& all = *workers_.front();
    for (std::size_t i = 1; i < workers_.size(); ++i) {
      const worker& other = *workers_[i];
      all.range.combine(other.range);
      all.first_nonfinite = std::min(all.first_nonfinite, other.first_nonfinite);
      all.binades.combine(other.binades);
      std::transform(all.columns.begin(), all.columns.end(), other.columns.begin(),
                     all.columns.begin(), [](auto x, auto y) { return std::max(x, y); });
    }
    cast_statistics& s = result_;
    s.count = static_cast<std::uint64_t>(size());
    s.zeros = all.range.zeros;
    s.nan = all.range.nan;
    s.inf = all.range.inf;
    if (s.nan + s.inf != 0) s.first_nonfinite = all.first_nonfinite;
    if (s.finite() != 0) {
      s.min = all.range.min;
      s.max = all.range.max;
      s.amax = all.range.amax();
    }
    if (s.nonzero() != 0) s.min_nonzero = all.range.min_nonzero;
    s.binades = all.binades.result();
    s.row_amax = values_of<Value>(rows_);
    s.column_amax = values_of<Value>(all.columns);
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      effects_[i].total.format = targets_[i].format;
      s.casts.push_back(effects_[i].result());
    }
    if (request_.sums) s.sum = sums_[plain].value();
    if (request_.sums) s.squares = sums_[squared].value();
  }

  /// The results of sums that neither overflow nor underflow.
  void finish_sums() {
    cast_statistics& s = result_;
    const auto finite = static_cast<double>(s.finite());
    scaled_mean_ = s.finite() == 0 ? 0 : sums_[plain].value() / finite;
    s.l1_norm = std::ldexp(sums_[magnitude].value(), -sum_log2_);
    if (!request_.sums) return;
    s.l2_norm = std::ldexp(std::sqrt(sums_[squared].value()), -sum_log2_);
    if (s.finite() == 0) return;
    s.mean = std::ldexp(scaled_mean_, -sum_log2_);
    s.rms = std::ldexp(std::sqrt(sums_[squared].value() / finite), -sum_log2_);
  }

  void finish_percentiles() {
    std::vector<std::uint64_t>& all = workers_.front()->counters;
    for (std::size_t i = 1; i < workers_.size(); ++i) {
      std::transform(all.begin(), all.end(), workers_[i]->counters.begin(), all.begin(),
                     std::plus<>());
    }
    percentiles_.next(all);
    if (percentiles_.done()) result_.percentiles = percentiles_.values();
  }

  statistics_request request_;
  matrix_shape shape_;
  std::vector<cast_target> targets_;
  std::vector<total_effect> effects_;
  percentile_search<Value> percentiles_;
  amax_words<Value> rows_;
  std::vector<std::unique_ptr<worker>> workers_;

  stage stage_ = stage::elements;
  int sum_log2_ = 0;        ///< sums are of the elements times 2^this
  double scaled_mean_ = 0;  ///< of the elements times 2^sum_log2_
  std::array<tree_sum, inputs> sums_;
  std::int64_t measured_ = 0;   ///< elements, in this pass
  std::vector<Value> waiting_;  ///< the elements of a chunk that is not yet full
  cast_statistics result_;
};

}  // namespace

std::unique_ptr<element_passes> element_passes::make(const statistics_request& request,
                                                     const matrix_shape& shape,
                                                     const executor& where) {
  if (request.format == format_id::fp64) {
    return std::make_unique<passes<double>>(request, shape, where);
  }
  return std::make_unique<passes<float>>(request, shape, where);
}

}  // namespace samebits::backends
