// A weight under an optimizer: how it is kept, and what becomes of it: implementation.
#include "fpinspect/explore/update/weight_life.hpp"

#include "fpinspect/cli/arguments.hpp"
#include "numerics/update/update.hpp"
#include "samebits/optimizer.hpp"

namespace fpinspect {

// --- How an optimizer keeps weights: the table, and bytes ----------------------------------------

namespace {

// The names are those of samebits.torch.optim, where it has the mode.
constexpr weight_mode known_modes[] = {
    {"fp32", stored_format::fp32},
    {"direct", stored_format::bf16_nearest},
    {"direct_fp16", stored_format::fp16_nearest},
    {"stochastic", stored_format::bf16_stochastic},
    {"kahan", stored_format::bf16_nearest, stored_format::none, low_part::kahan},
    {"split16", stored_format::bf16_nearest, stored_format::none, low_part::split},
    {"master32", stored_format::bf16_nearest, stored_format::fp32},
    {"fp8_copy", stored_format::e4m3_scaled, stored_format::fp32},
    {"master16_scaled", stored_format::e4m3_scaled, stored_format::fp16_scaled},
};

}  // namespace

std::vector<weight_mode> weight_modes_argument(std::string_view option,
                                               const std::vector<std::string>& names) {
  if (names.empty() || names == std::vector<std::string>{"all"}) {
    return {std::begin(known_modes), std::end(known_modes)};
  }
  std::vector<weight_mode> found;
  for (const std::string& name : names) {
    found.push_back(row_argument<weight_mode>(option, name, known_modes));
  }
  return found;
}

double bytes_of(stored_format stored, int block) {
  const double scale = has_block_scales(stored) ? double{sizeof(float)} / block : 0;
  return code_bytes(stored) + scale;
}

double bytes_of(const weight_mode& mode, int block) {
  constexpr double low_bytes = 2;
  return bytes_of(mode.weights, block) + bytes_of(mode.master, block) +
         (mode.low == low_part::none ? 0 : low_bytes);
}

// --- What an optimizer makes of a weight, by optimizer_step() ------------------------------------

namespace {

constexpr std::size_t block_count = equal_weights + 1;
static_assert(block_count <= scale_block);

/// An array of an optimizer's tensor: one block.
class stored_block {
 public:
  explicit stored_block(stored_format format) : format_(format) {}

  [[nodiscard]] stored_array array() {
    if (format_ == stored_format::none) return {};
    return {codes_.data(), format_, has_block_scales(format_) ? &scale_ : nullptr};
  }

 private:
  stored_format format_;
  std::vector<float> codes_ = std::vector<float>(block_count);  // aligned for all formats
  float scale_ = 1;
};

/// The first `n` values of an array.
std::vector<float> values_of(const stored_array& array, std::size_t n = block_count,
                             const store_options& options = {}) {
  std::vector<float> values(n);
  samebits::load(array, view_of(values), options);
  return values;
}

/// The arrays of the tensor in one mode.
struct kept_tensor {
  weight_mode mode;
  stored_block weights;
  stored_block master;
  std::vector<std::uint16_t> low = std::vector<std::uint16_t>(block_count);
  std::vector<float> first = std::vector<float>(block_count);
  std::vector<float> second = std::vector<float>(block_count);

  kept_tensor(const weight_mode& chosen, const update_plan& plan)
      : mode(chosen), weights(chosen.weights), master(chosen.master) {
    std::vector<float> start(block_count, plan.start);
    start.back() = plan.block_amax;
    if (mode.master != stored_format::none) {
      samebits::store(view_of(start), master.array());
      start = values_of(master.array());
    }
    stored_array begun = weights.array();
    // The first rounding takes no random bits.
    if (begun.format == stored_format::bf16_stochastic) begun.format = stored_format::bf16_nearest;
    samebits::store(view_of(start), begun, with_low());
  }

  /// What the model reads of the first weight.
  [[nodiscard]] double read() { return values_of(weights.array(), 1)[0]; }
  /// What the optimizer computes with in place of the first weight.
  [[nodiscard]] double kept() {
    if (mode.master != stored_format::none) return values_of(master.array(), 1)[0];
    return values_of(weights.array(), 1, with_low())[0];
  }

  [[nodiscard]] optimizer_tensor tensor(const std::vector<float>& gradient) {
    return {.weights = weights.array(),
            .gradient = {gradient.data(), stored_format::fp32},
            .master = master.array(),
            .low = mode.low == low_part::none ? nullptr : low.data(),
            .low_kind = mode.low,
            .states = {{{first.data(), stored_format::fp32}, {second.data(), stored_format::fp32}}},
            .count = block_count,
            .block = scale_block,
            .name = std::string(mode.name)};
  }

 private:
  [[nodiscard]] store_options with_low() {
    return {.low = mode.low == low_part::none ? nullptr : low.data(), .low_kind = mode.low};
  }
};

}  // namespace

std::vector<weight_life> lives_of(const update_plan& plan) {
  std::vector<kept_tensor> kept;
  kept.reserve(plan.modes.size());  // the list points to the arrays
  std::vector<float> gradient(block_count);
  std::vector<optimizer_tensor> tensors;
  for (const weight_mode& mode : plan.modes) {
    kept.emplace_back(mode, plan);
    tensors.push_back(kept.back().tensor(gradient));
  }
  const optimizer_list list(std::move(tensors));
  std::vector<weight_life> lives(kept.size());
  std::vector<double> last;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    last.push_back(kept[i].read());
    lives[i].read.push_back(last[i]);
  }
  for (std::uint64_t t = 1; t <= plan.shown.back(); ++t) {
    std::fill_n(gradient.begin(), equal_weights, plan.gradient(t));
    optimizer_step(list, {&plan.settings, 1}, {.applied_steps = t, .seed = plan.seed});
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const double read = kept[i].read();
      const bool stays = read == last[i] || (std::isnan(read) && std::isnan(last[i]));
      if (!stays) lives[i].last_change = t;
      last[i] = read;
      if (t == plan.shown[lives[i].read.size()]) lives[i].read.push_back(read);
    }
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    lives[i].kept = kept[i].kept();
    const std::vector<float> equal = values_of(kept[i].weights.array(), equal_weights);
    lives[i].equal.assign(equal.begin(), equal.end());
  }
  return lives;
}

// --- The same formulas in binary64, to compare with ----------------------------------------------

namespace {

/// The Arithmetic policy of a step in binary64.
struct binary64_arithmetic {
  using word = std::uint64_t;
  static double value(word x) { return std::bit_cast<double>(x); }
  static word bits(double x) { return std::bit_cast<word>(x); }

  static word product(word a, word b) { return bits(value(a) * value(b)); }
  static word quotient(word a, word b) { return bits(value(a) / value(b)); }
  static word sum(word a, word b) { return bits(value(a) + value(b)); }
  static word square_root(word a) { return bits(std::sqrt(value(a))); }
  // The sign of a NaN depends on the processor.
  static word canonical(word a) { return std::isnan(value(a)) ? bits(NAN) : a; }
};

using exact_weight = numerics::update_element<std::uint64_t>;

/// One step of profile strict. `x` is one of the equal weights, and the other weight.
template <update_rule Rule, bool HasMomentum>
void step_weights(const numerics::constants_in<std::uint64_t>& c, std::array<exact_weight, 2>& x) {
  using arithmetic = binary64_arithmetic;
  constexpr update_profile strict = update_profile::strict;
  for (exact_weight& one : x) {
    numerics::update_formula<Rule, strict, HasMomentum>::template apply<arithmetic>(c, one);
  }
  if constexpr (Rule == update_rule::lamb) {
    std::array<std::uint64_t, 2> direction{};
    for (std::size_t i = 0; i < x.size(); ++i) {
      direction[i] = numerics::lamb_direction<strict, arithmetic>(c, x[i]);
    }
    const auto norm = [](std::uint64_t equal, std::uint64_t other) {
      const double part = std::sqrt(double{equal_weights}) * arithmetic::value(equal);
      return arithmetic::bits(std::hypot(part, arithmetic::value(other)));
    };
    const std::uint64_t factor =
        numerics::lamb_factor(c, norm(x[0].weight, x[1].weight), norm(direction[0], direction[1]));
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i].weight = numerics::lamb_weight<arithmetic>(factor, direction[i], x[i].weight);
    }
  }
}

}  // namespace

std::vector<double> exact_life(const update_plan& plan) {
  using arithmetic = binary64_arithmetic;
  const optimizer_settings& s = plan.settings;
  std::array<exact_weight, 2> x{};
  x[0].weight = arithmetic::bits(plan.start);
  x[1].weight = arithmetic::bits(plan.block_amax);
  std::vector<double> shown = {plan.start};
  for (std::uint64_t t = 1; t <= plan.shown.back(); ++t) {
    x[0].gradient = arithmetic::bits(plan.gradient(t));
    x[1].gradient = 0;
    const auto constants =
        numerics::constants_of(s, arithmetic::bits(s.learning_rate), t, arithmetic::bits(1));
    with_enumerator(s.rule, [&]<update_rule Rule>() {
      if (s.momentum != 0) return step_weights<Rule, true>(constants, x);
      step_weights<Rule, false>(constants, x);
    });
    if (t == plan.shown[shown.size()]) shown.push_back(arithmetic::value(x[0].weight));
  }
  return shown;
}

}  // namespace fpinspect
