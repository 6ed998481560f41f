// The passes of statistics_pass: implementation.
#include "backends/reference/statistics/element_passes.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string_view>
#include <type_traits>
#include <vector>

#include "backends/reference/statistics/chunk_loops.hpp"
#include "backends/reference/statistics/element_counters.hpp"
#include "backends/self_test/build_flags.hpp"
#include "backends/threads/interruption.hpp"
#include "backends/threads/tasks.hpp"
#include "samebits/convert.hpp"
#include "samebits/reductions.hpp"

namespace samebits::backends {
namespace {

constexpr auto chunk_size = static_cast<std::int64_t>(statistics_chunk);
/// The chunks of a batch share their threads; their sums wait for each other in memory.
constexpr std::int64_t chunks_at_once = 1024;

template <class Value>
constexpr format_id format_of_values = sizeof(Value) == 4 ? format_id::fp32 : format_id::fp64;

/// The power of two by which elements are multiplied before they are added and squared: 0 if amax is
/// 0 or in [2^-500, 2^500), else the one that brings amax into [1, 2).
int sum_log2_for(double amax) {
  const bool squares_fit = amax == 0 || (amax >= 0x1p-500 && amax < 0x1p500);
  return squares_fit ? 0 : -std::ilogb(amax);
}

/// What a pass computes besides percentiles: everything that needs only the elements; sums of the
/// elements times a power of two; sums of deviations from the mean.
enum class stage : std::uint8_t { elements, scaled_sums, deviations, percentiles, done };

/// Sums over a chunk, which is a subtree.
struct chunk_sums {
  double sum = 0, squares = 0, magnitudes = 0, deviations = 0;
};

/// Sums over all elements. The trees' inputs are chunks, of which only the last one may be partial.
struct total_sums {
  tree_sum sum, squares, magnitudes, deviations;

  void add(const chunk_sums& chunk) {
    sum.add(chunk.sum);
    squares.add(chunk.squares);
    magnitudes.add(chunk.magnitudes);
    deviations.add(chunk.deviations);
  }
};

/// The effect of a cast on all elements.
struct total_effect {
  cast_effect counts;
  tree_sum signal, noise, saturated_signal, saturated_noise;

  void add(const cast_effect& chunk) {
    for (const auto member : {&cast_effect::underflow, &cast_effect::subnormal,
                              &cast_effect::overflow, &cast_effect::to_inf, &cast_effect::to_nan,
                              &cast_effect::to_max, &cast_effect::changed}) {
      counts.*member += chunk.*member;
    }
    signal.add(chunk.signal);
    noise.add(chunk.noise);
    saturated_signal.add(chunk.saturated_signal);
    saturated_noise.add(chunk.saturated_noise);
  }
  [[nodiscard]] cast_effect result() const {
    cast_effect all = counts;
    all.signal = signal.value();
    all.noise = noise.value();
    all.saturated_signal = saturated_signal.value();
    all.saturated_noise = saturated_noise.value();
    return all;
  }
};

/// Memory of one thread, and what it has counted.
template <class Value>
struct statistics_worker {
  explicit statistics_worker(std::string_view name) : backend(name) {}

  /// The elements [first, first + count) of a view in row-major order: in place, or converted.
  std::span<const Value> load(const const_matrix_view& v, std::int64_t first, std::int64_t count);
  /// The elements times 2^log2, as float if all products are exact and finite, else as double.
  template <class Function>
  void with_products(std::span<const Value> exact, int log2, const Function& f);
  /// The elements rounded to a format.
  template <class Exact>
  std::span<const float> rounded(format_id to, std::span<const Exact> exact, overflow policy);

  void convert_to(format_id to, void* out, const const_matrix_view& in,
                  overflow policy = overflow::ieee) const {
    convert(in, view_of_codes(to, out, in.rows, in.cols), {.overflow = policy}, {backend, 1});
  }

  std::string_view backend;
  chunk_tree tree;
  std::vector<Value> values;
  std::vector<std::byte> codes;
  std::vector<float> products, casts;
  std::vector<double> doubles;

  chunk_range range;
  std::uint64_t first_nonfinite = ~std::uint64_t{0};
  binade_counter<Value> binades;
  typename channel_amaxes<Value>::words columns;
  std::vector<std::uint64_t> counters;  ///< of percentiles
};

template <class Value>
std::span<const Value> statistics_worker<Value>::load(const const_matrix_view& v,
                                                      std::int64_t first, std::int64_t count) {
  const std::int64_t bytes = storage_bytes(v.format);
  const auto at = [&](std::int64_t row, std::int64_t col) {
    return static_cast<const std::byte*>(v.data) +
           (row * v.row_stride + col * v.col_stride) * bytes;
  };
  const auto size = static_cast<std::size_t>(count);
  const bool dense = v.col_stride == 1 && (v.rows == 1 || v.row_stride == v.cols);
  if (dense && v.format == format_of_values<Value> &&
      reinterpret_cast<std::uintptr_t>(v.data) % sizeof(Value) == 0) {
    return {static_cast<const Value*>(v.data) + first, size};
  }
  values.resize(statistics_chunk);
  Value* out = values.data();
  while (count > 0) {
    const_matrix_view part = v;
    const std::int64_t col = dense ? 0 : first % v.cols;
    part.data = dense ? at(0, first) : at(first / v.cols, col);
    part.cols = std::min(count, dense ? count : v.cols - col);
    part.rows = part.cols == v.cols ? count / v.cols : 1;
    convert_to(format_of_values<Value>, out, part);
    out += part.rows * part.cols;
    first += part.rows * part.cols;
    count -= part.rows * part.cols;
  }
  return std::span<const Value>(values).first(size);
}

template <class Value>
template <class Function>
void statistics_worker<Value>::with_products(std::span<const Value> exact, int log2,
                                             const Function& f) {
  if constexpr (std::is_same_v<Value, float>) {
    bool fits = log2 >= 0;  // else a product may be subnormal and inexact
    products.resize(statistics_chunk);
    const float factor = std::ldexp(1.0f, log2);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      products[i] = exact[i] * factor;
      fits = fits && std::isfinite(products[i]);
    }
    if (fits) return f(std::span<const float>(products).first(exact.size()));
  }
  // Products outside binary64 stay numbers that overflow, or underflow, in every format of casts.
  using limits = std::numeric_limits<double>;
  doubles.resize(statistics_chunk);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const auto x = static_cast<double>(exact[i]);
    double product = std::ldexp(x, log2);
    if (std::isfinite(x) && std::isinf(product)) product = std::copysign(limits::max(), x);
    if (x != 0 && product == 0) product = std::copysign(limits::denorm_min(), x);
    doubles[i] = product;
  }
  f(std::span<const double>(doubles).first(exact.size()));
}

template <class Value>
template <class Exact>
std::span<const float> statistics_worker<Value>::rounded(format_id to, std::span<const Exact> exact,
                                                         overflow policy) {
  constexpr format_id from = format_of_values<Exact>;
  if constexpr (from == format_id::fp32) {
    if (to == from) return exact;
  }
  const auto cols = static_cast<std::int64_t>(exact.size());
  casts.resize(statistics_chunk);
  codes.resize(statistics_chunk * sizeof(float));
  const bool is_float = to == format_id::fp32;
  void* const out = is_float ? static_cast<void*>(casts.data()) : codes.data();
  convert_to(to, out, view_of_codes(from, static_cast<const void*>(exact.data()), 1, cols), policy);
  if (!is_float) {
    convert_to(format_id::fp32, casts.data(),
               view_of_codes(to, static_cast<const void*>(codes.data()), 1, cols));
  }
  return std::span<const float>(casts).first(exact.size());
}

/// Value is double for elements of fp64, else float.
template <class Value>
class passes final : public element_passes {
 public:
  passes(const statistics_request& request, const matrix_shape& shape, const executor& where)
      : request_(request),
        shape_(shape),
        targets_(request.casts.begin(), request.casts.end()),
        effects_(targets_.size()),
        percentiles_(request.format),
        rows_(request.row_amax ? static_cast<std::size_t>(shape.rows) : 0, -1) {
    const std::int64_t chunks = (size() + chunk_size - 1) / chunk_size;
    const std::int64_t threads = std::clamp<std::int64_t>(chunks, 1, thread_count(where.threads));
    const auto columns = request.column_amax ? static_cast<std::size_t>(shape.cols) : 0;
    for (std::int64_t i = 0; i < threads; ++i) {
      workers_.push_back(std::make_unique<worker>(where.backend));
      workers_.back()->columns.assign(columns, -1);
    }
    format = request.format;
    begin_pass(stage::elements);
  }

  void add(const const_matrix_view& elements) override;
  bool next_pass() override;
  [[nodiscard]] cast_statistics result() const override { return result_; }

 private:
  using worker = statistics_worker<Value>;

  [[nodiscard]] std::int64_t size() const { return shape_.rows * shape_.cols; }
  [[nodiscard]] bool wants_sum() const { return request_.sums || request_.std; }
  [[nodiscard]] bool searches() const { return request_.percentiles && !percentiles_.done(); }
  void begin_pass(stage next);
  void add_chunks(const const_matrix_view& v, std::int64_t first, std::int64_t count);
  void measure(worker& own, std::uint64_t first, std::span<const Value> elements, chunk_sums& sums,
               std::span<cast_effect> effects);
  void measure_elements(worker& own, std::uint64_t first, std::span<const Value> elements,
                        chunk_sums& sums, std::span<cast_effect> effects);
  void add_sums(worker& own, std::span<const Value> elements, bool all_finite, chunk_sums& sums);
  template <class Exact>
  void measure_casts(worker& own, std::span<const Exact> exact, const chunk_range& range,
                     double squares, std::span<cast_effect> effects);
  void finish_elements();
  void finish_sums();
  void finish_percentiles();

  statistics_request request_;
  matrix_shape shape_;
  std::vector<cast_target> targets_;
  std::vector<total_effect> effects_;
  percentile_search<Value> percentiles_;
  typename channel_amaxes<Value>::words rows_;
  std::vector<std::unique_ptr<worker>> workers_;

  stage stage_ = stage::elements;
  int sum_log2_ = 0;        ///< sums are of the elements times 2^this
  double scaled_mean_ = 0;  ///< of the elements times 2^sum_log2_
  total_sums sums_;
  std::int64_t measured_ = 0;   ///< elements, in this pass
  std::vector<Value> waiting_;  ///< the elements of a chunk that is not yet full
  cast_statistics result_;
};

template <class Value>
void passes<Value>::begin_pass(stage next) {
  stage_ = next;
  missing = next == stage::done ? 0 : size();
  measured_ = 0;
  done = next == stage::done;
  sums_ = {};
  if (!searches()) return;
  for (const auto& one : workers_) one->counters.assign(percentiles_.counters(), 0);
}

template <class Value>
void passes<Value>::add(const const_matrix_view& v) {
  const std::int64_t count = v.rows * v.cols;
  for (std::int64_t at = 0, part = 0; at < count; at += part) {
    const auto waiting = static_cast<std::int64_t>(waiting_.size());
    const std::int64_t left = count - at;
    const std::int64_t whole = left == missing ? left : left / chunk_size * chunk_size;
    const bool waits = waiting != 0 || whole == 0;
    part =
        waits ? std::min(left, chunk_size - waiting) : std::min(whole, chunks_at_once * chunk_size);
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

/// Adds the elements [first, first + count) of a view: whole chunks, or the last ones of the matrix.
template <class Value>
void passes<Value>::add_chunks(const const_matrix_view& v, std::int64_t first, std::int64_t count) {
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
      const auto chunk = static_cast<std::size_t>(i);
      measure(own, static_cast<std::uint64_t>(measured_ + at),
              own.load(v, first + at, std::min(chunk_size, count - at)), sums[chunk],
              effects.empty() ? std::span<cast_effect>()
                              : std::span(effects).subspan(chunk * casts, casts));
    }
  });
  measured_ += count;
  for (const chunk_sums& one : sums) sums_.add(one);
  for (std::size_t i = 0; i < effects.size(); ++i) effects_[i % casts].add(effects[i]);
}

template <class Value>
void passes<Value>::measure(worker& own, std::uint64_t first, std::span<const Value> elements,
                            chunk_sums& sums, std::span<cast_effect> effects) {
  if (searches()) percentiles_.count(elements, own.counters);
  if (stage_ == stage::elements) measure_elements(own, first, elements, sums, effects);
  if (stage_ == stage::scaled_sums) add_sums(own, elements, false, sums);
  if (stage_ == stage::deviations) {
    sums.deviations =
        own.tree.root_of_finite(elements, result_.finite() == result_.count, sum_log2_,
                                [this](double x) { return square_of(x - scaled_mean_); });
  }
}

template <class Value>
void passes<Value>::measure_elements(worker& own, std::uint64_t first,
                                     std::span<const Value> elements, chunk_sums& sums,
                                     std::span<cast_effect> effects) {
  const chunk_range range = range_of(elements);
  own.range.combine(range);
  if (!range.all_finite()) {
    const auto found = std::find_if_not(elements.begin(), elements.end(), is_finite<Value>);
    const auto index = static_cast<std::uint64_t>(found - elements.begin());
    own.first_nonfinite = std::min(own.first_nonfinite, first + index);
  }
  if (request_.binades) own.binades.add(elements);
  if (request_.row_amax || request_.column_amax) {
    channel_amaxes<Value>::add(first, static_cast<std::size_t>(shape_.cols), elements, rows_,
                               own.columns);
  }
  add_sums(own, elements, range.all_finite(), sums);
  if (effects.empty()) return;
  if (request_.scale_log2 == 0) {
    return measure_casts(own, elements, range, sums.squares, effects);
  }
  own.with_products(elements, request_.scale_log2, [&](auto products) {
    const chunk_range of_products = range_of(products);
    const double squares =
        own.tree.root_of_finite(products, of_products.all_finite(), 0, square_of);
    measure_casts(own, products, of_products, squares, effects);
  });
}

template <class Value>
void passes<Value>::add_sums(worker& own, std::span<const Value> elements, bool all_finite,
                             chunk_sums& sums) {
  const auto root = [&](const auto& f) {
    return own.tree.root_of_finite(elements, all_finite, sum_log2_, f);
  };
  const bool for_casts = !targets_.empty() && request_.scale_log2 == 0;
  if (wants_sum()) sums.sum = root([](double x) { return x; });
  if (request_.sums || for_casts) sums.squares = root([](double x) { return square_of(x); });
  if (request_.l1_norm) sums.magnitudes = root([](double x) { return std::fabs(x); });
}

template <class Value>
template <class Exact>
void passes<Value>::measure_casts(worker& own, std::span<const Exact> exact,
                                  const chunk_range& range, double squares,
                                  std::span<cast_effect> effects) {
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
template <class Value>
void passes<Value>::finish_elements() {
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
  s.row_amax = channel_amaxes<Value>::values(rows_);
  s.column_amax = channel_amaxes<Value>::values(all.columns);
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    effects_[i].counts.format = targets_[i].format;
    s.casts.push_back(effects_[i].result());
  }
  if (request_.sums) s.sum = sums_.sum.value();
  if (request_.sums) s.squares = sums_.squares.value();
}

/// The results of sums that neither overflow nor underflow.
template <class Value>
void passes<Value>::finish_sums() {
  cast_statistics& s = result_;
  const auto finite = static_cast<double>(s.finite());
  scaled_mean_ = s.finite() == 0 ? 0 : sums_.sum.value() / finite;
  s.l1_norm = std::ldexp(sums_.magnitudes.value(), -sum_log2_);
  if (!request_.sums) return;
  s.l2_norm = std::ldexp(std::sqrt(sums_.squares.value()), -sum_log2_);
  if (s.finite() == 0) return;
  s.mean = std::ldexp(scaled_mean_, -sum_log2_);
  s.rms = std::ldexp(std::sqrt(sums_.squares.value() / finite), -sum_log2_);
}

template <class Value>
void passes<Value>::finish_percentiles() {
  std::vector<std::uint64_t>& all = workers_.front()->counters;
  for (std::size_t i = 1; i < workers_.size(); ++i) {
    std::transform(all.begin(), all.end(), workers_[i]->counters.begin(), all.begin(),
                   std::plus<>());
  }
  percentiles_.next(all);
  if (percentiles_.done()) result_.percentiles = percentiles_.values();
}

template <class Value>
bool passes<Value>::next_pass() {
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
    const double variance = sums_.deviations.value() / static_cast<double>(result_.finite());
    result_.std = std::ldexp(std::sqrt(variance), -sum_log2_);
  }
  if (next == stage::percentiles && !searches()) next = stage::done;
  begin_pass(next);
  return !done;
}

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
