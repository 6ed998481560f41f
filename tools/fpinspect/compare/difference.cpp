// How the values of two tensors differ: implementation.
#include "fpinspect/compare/comparison.hpp"

#include <atomic>

#include "fpinspect/cli/parallel.hpp"
#include "fpinspect/formats/describe.hpp"
#include "samebits/reductions.hpp"

namespace fpinspect {

std::string difference_figures::specials() const {
  std::string text;
  add_count(text, new_nan, "new NaN");
  add_count(text, new_inf, "new Inf");
  add_count(text, lost_nan, "NaN became numbers");
  add_count(text, lost_inf, "Inf became other values");
  return text;
}

sqnr difference_figures::ratio() const {
  if (count == 0) return {.empty = true, .reason = "there are no elements"};
  const std::string changes = specials();
  if (!changes.empty()) return {.reason = changes};
  if (differ == 0) return {.exact = true};
  if (const auto db = sqnr_db(signal, noise)) return {.db = db};
  if (signal == 0) return {.reason = "the reference is all zeros"};
  return {.reason = "signal or noise is beyond binary64"};
}

namespace {

/// The format in which a distance between elements of two formats is counted: the one with fewer
/// significand bits. e8m0 counts only beside itself.
format_id coarser(format_id a, format_id b) {
  if (a == b) return a;
  if (a == format_id::e8m0) return b;
  if (b == format_id::e8m0) return a;
  const format_spec& in_a = spec_of(a);
  const format_spec& in_b = spec_of(b);
  if (in_a.mantissa_bits != in_b.mantissa_bits) {
    return in_a.mantissa_bits < in_b.mantissa_bits ? a : b;
  }
  return in_a.exponent_bits < in_b.exponent_bits ? a : b;
}

/// The number of steps between two codes of a format. Neither may be NaN. Both zeros are one value.
std::uint64_t code_distance(format_id format, std::uint64_t a, std::uint64_t b) {
  const format_spec& spec = spec_of(format);
  const int magnitude_bits = spec.exponent_bits + spec.mantissa_bits;
  // Positions on the line of all values; a negative one is in two's complement.
  const auto position = [&](std::uint64_t code) {
    code >>= spec.padding_bits;
    const std::uint64_t magnitude = code & ((std::uint64_t{1} << magnitude_bits) - 1);
    return (code >> magnitude_bits & 1) != 0 ? 0 - magnitude : magnitude;
  };
  const std::uint64_t x = position(a);
  const std::uint64_t y = position(b);
  return static_cast<std::int64_t>(x) > static_cast<std::int64_t>(y) ? x - y : y - x;
}

constexpr std::uint64_t chunk = 1 << 15;  // elements

/// Reads a tensor chunk by chunk: codes as stored and values.
class chunk_reader {
 public:
  chunk_reader(const compared_tensor& tensor, const executor& where)
      : tensor_(tensor), where_(where) {
    const auto room = static_cast<std::size_t>(std::min(tensor.in.info.count, chunk));
    codes_.resize(room * bytes_each(tensor.format()));
    values_.resize(room);
    rounded_.resize(room * sizeof(std::uint64_t));
  }

  void load(std::uint64_t first, std::uint64_t count) {
    size_ = static_cast<std::size_t>(count);
    tensor_.read(first, count, codes_.data());
    decode(tensor_.format(), codes_.data(), std::span(values_).first(size_));
  }

  [[nodiscard]] format_id format() const { return tensor_.format(); }
  [[nodiscard]] std::span<const double> values() const { return std::span(values_).first(size_); }
  [[nodiscard]] const std::byte* codes() const { return codes_.data(); }

  /// The elements rounded to nearest even, with saturation. Valid until the next call.
  const std::byte* rounded_to(format_id to) {
    if (to == tensor_.format()) return codes_.data();
    samebits::convert(codes_at(tensor_.format(), codes(), 1, size_),
                      codes_at(to, rounded_.data(), 1, size_), {.overflow = overflow::saturate},
                      {where_.backend, 1});
    return rounded_.data();
  }

 private:
  const compared_tensor& tensor_;
  executor where_;
  std::size_t size_ = 0;
  std::vector<std::byte> codes_;
  std::vector<double> values_;
  std::vector<std::byte> rounded_;
};

/// Number of codes of the chunk that differ.
std::uint64_t different_codes(const chunk_reader& a, const chunk_reader& b) {
  const std::size_t bytes = bytes_each(a.format());
  std::uint64_t differ = 0;
  for (std::size_t i = 0; i < a.values().size(); ++i) {
    differ += std::memcmp(a.codes() + i * bytes, b.codes() + i * bytes, bytes) != 0 ? 1u : 0u;
  }
  return differ;
}

/// Collects the figures of two readers over the same chunks.
class pair_meter {
 public:
  pair_meter(chunk_reader& a, chunk_reader& b) : a_(a), b_(b) {
    figures_.ulp_format = coarser(a.format(), b.format());
  }

  void add() {
    const std::span<const double> a = a_.values();
    const std::span<const double> b = b_.values();
    add_values(a, b);
    const format_id format = figures_.ulp_format;
    const std::size_t bytes = bytes_each(format);
    const std::byte* const codes_a = a_.rounded_to(format);
    const std::byte* const codes_b = b_.rounded_to(format);
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!std::isfinite(a[i]) || !std::isfinite(b[i])) continue;
      const std::uint64_t distance = code_distance(format, load_code(codes_a + i * bytes, bytes),
                                                   load_code(codes_b + i * bytes, bytes));
      figures_.max_ulp = std::max(figures_.max_ulp, distance);
      ++figures_.steps[static_cast<std::size_t>(std::bit_width(distance))];
    }
    if (a_.format() == b_.format()) {
      figures_.bits_differ = figures_.bits_differ.value_or(0) + different_codes(a_, b_);
    }
    figures_.count += a.size();
  }

  [[nodiscard]] difference_figures result() const {
    difference_figures result = figures_;
    result.sum_error = errors_.value();
    result.signal = signal_.value();
    result.noise = noise_.value();
    return result;
  }

 private:
  void add_values(std::span<const double> a, std::span<const double> b) {
    difference_figures& f = figures_;
    inputs_.resize(3 * a.size());
    const std::span<double> all = inputs_;
    const std::span<double> error = all.first(a.size());
    const std::span<double> signal = all.subspan(a.size(), a.size());
    const std::span<double> noise = all.last(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double x = a[i];
      const double y = b[i];
      const bool paired = std::isfinite(x) && std::isfinite(y);
      const double d = paired ? std::fabs(x - y) : 0.0;
      error[i] = d;
      signal[i] = paired ? x * x : 0.0;
      noise[i] = d * d;
      f.paired += paired ? 1u : 0u;
      const bool some = std::isfinite(x) && x != 0.0;
      f.nonzero += some ? 1u : 0u;
      f.underflow += some && y == 0.0 ? 1u : 0u;
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      ++f.differ;
      const found_difference here = {f.count + i, x, y};
      if (!f.first) f.first = here;
      if (!paired) add_specials(x, y);
      if (d > f.max_error) {
        f.max_error = d;
        f.largest = here;
      }
    }
    errors_.add(error);
    signal_.add(signal);
    noise_.add(noise);
  }

  void add_specials(double a, double b) {
    difference_figures& f = figures_;
    if (std::isnan(a)) ++f.lost_nan;
    if (std::isnan(b)) ++f.new_nan;
    if (std::isinf(a)) ++f.lost_inf;
    if (std::isinf(b)) ++f.new_inf;
  }

  chunk_reader& a_;
  chunk_reader& b_;
  difference_figures figures_;
  tree_sum errors_;
  tree_sum signal_;
  tree_sum noise_;
  std::vector<double> inputs_;
};

/// Counts the elements of which one side is closer to the original.
void count_closer(original_figures& figures, std::span<const double> original,
                  std::span<const double> in_a, std::span<const double> in_b) {
  for (std::size_t i = 0; i < original.size(); ++i) {
    const double to_a = std::fabs(original[i] - in_a[i]);
    const double to_b = std::fabs(original[i] - in_b[i]);
    // A value that is not finite is farther away than every number.
    const bool far_a = !std::isfinite(to_a);
    const bool far_b = !std::isfinite(to_b);
    if (to_a < to_b || (far_b && !far_a)) {
      ++figures.closer_a;
    } else if (to_b < to_a || (far_a && !far_b)) {
      ++figures.closer_b;
    }
  }
}

/// Calls f(first, count) for each chunk of a tensor.
template <class Function>
void for_each_range(std::uint64_t count, const Function& f) {
  for (std::uint64_t first = 0; first < count; first += chunk) {
    f(first, std::min(chunk, count - first));
  }
}

/// Whether all bytes are equal.
bool are_equal(std::span<const std::byte> a, std::span<const std::byte> b, std::size_t threads) {
  if (a.size() != b.size()) return false;
  constexpr std::size_t part = 1 << 20;
  std::atomic<bool> equal = true;
  for_each_index((a.size() + part - 1) / part, threads, [&](std::size_t i, std::size_t) {
    const std::size_t at = i * part;
    const std::size_t size = std::min(part, a.size() - at);
    if (equal && std::memcmp(a.data() + at, b.data() + at, size) != 0) equal = false;
  });
  return equal;
}

}  // namespace

bool measure_equal(compared_pair& pair, const executor& where) {
  const compared_tensor& t = *pair.a;
  const std::uint64_t count = t.in.info.count;
  if (pair.original != nullptr || t.format() != pair.b->format() || count == 0) return false;
  const auto codes = t.in_place();
  const auto others = pair.b->in_place();
  if (!codes || !others || !are_equal(*codes, *others, static_cast<std::size_t>(where.threads))) {
    return false;
  }
  const cast_statistics s =
      statistics_of(codes_at(t.format(), codes->data(), 1, count), {.sums = true}, where);
  difference_figures& f = pair.figures;
  f.ulp_format = t.format();
  f.count = s.count;
  f.bits_differ = 0;
  f.paired = f.steps[0] = s.finite();
  f.nonzero = s.nonzero();
  f.signal = s.squares;
  return true;
}

void measure(compared_pair& pair, const executor& where) {
  chunk_reader a(*pair.a, where);
  chunk_reader b(*pair.b, where);
  if (pair.original == nullptr) {
    pair_meter meter(a, b);
    for_each_range(pair.a->in.info.count, [&](std::uint64_t first, std::uint64_t count) {
      a.load(first, count);
      b.load(first, count);
      meter.add();
    });
    pair.figures = meter.result();
    return;
  }
  chunk_reader original(*pair.original, where);
  pair_meter with_a(original, a);
  pair_meter with_b(original, b);
  original_figures figures;
  for_each_range(pair.a->in.info.count, [&](std::uint64_t first, std::uint64_t count) {
    original.load(first, count);
    a.load(first, count);
    b.load(first, count);
    with_a.add();
    with_b.add();
    count_closer(figures, original.values(), a.values(), b.values());
  });
  figures.a = with_a.result();
  figures.b = with_b.result();
  pair.against = figures;
}
}  // namespace fpinspect
