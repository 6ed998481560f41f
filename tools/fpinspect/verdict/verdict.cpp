// The verdict on a set of tensors: implementation.
#include "fpinspect/verdict/verdict.hpp"

#include <tuple>

#include "samebits/scalar.hpp"

namespace fpinspect {

// --- Losses of formats at each loss scale --------------------------------------------------------

namespace {

constexpr int top_binade = 15;  // 65520 = 2^15 * (2 - 2^-11) is the smallest that overflows

/// Half of the smallest subnormal is 2^this: a tie, which goes to 0. For fp16 -25.
int zero_tie_of(format_id format) {
  const format_spec f = spec_of(format);
  return -f.bias - f.mantissa_bits;
}

}  // namespace

scale_loss loss_at(const binades& elements, int log2) {
  scale_loss loss = {.log2 = log2, .underflow = underflow_at(elements, log2, format_id::fp16)};
  for (const auto& [exponent, counts] : elements) {
    const int scaled = exponent + log2;
    if (scaled == top_binade) loss.overflow += counts.top;
    if (scaled > top_binade) loss.overflow += counts.all;
  }
  return loss;
}

double sqnr_bound_at(const binades& elements, int log2) {
  if (elements.empty()) return std::numeric_limits<double>::infinity();
  constexpr int half_ulp = 11;    // of 2^e: 2^(e - 11)
  constexpr int subnormal = -25;  // half of the distance between subnormals is 2^-25
  const int top = elements.rbegin()->first;
  double signal = 0;
  double noise = 0;
  for (const auto& [exponent, counts] : elements) {
    const auto count = static_cast<double>(counts.all);
    const int error = std::max(exponent - half_ulp, subnormal - log2);
    signal += std::ldexp(count, 2 * (exponent - top));
    noise += std::ldexp(count, 2 * (error - top));
  }
  return 10.0 * std::log10(signal / noise);
}

std::uint64_t underflow_at(const binades& elements, int log2, format_id to) {
  const int tie = zero_tie_of(to);
  std::uint64_t underflow = 0;
  for (const auto& [exponent, counts] : elements) {
    if (exponent + log2 < tie) underflow += counts.all;
    if (exponent + log2 == tie) underflow += counts.powers;
  }
  return underflow;
}

std::optional<int> best_scale_log2(double amax, format_id to) {
  if (amax == 0) return std::nullopt;
  // This scale brings amax into the binade of max finite.
  int log2 = std::ilogb(decode_double(to, max_finite(to))) - std::ilogb(amax);
  const auto scaled = std::bit_cast<std::uint64_t>(std::ldexp(amax, log2));
  if (convert_code(format_id::fp64, to, scaled).overflow) --log2;
  if (log2 < smallest_scale_log2) return std::nullopt;
  return std::min(log2, largest_scale_log2);
}

// --- The decision --------------------------------------------------------------------------------

namespace {

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// Whether the tensor counts for the loss scale: gradients with more than 8 bits, of which the finite
/// elements count.
bool is_gradient(const tensor_evidence& tensor) {
  const bool wide = tensor.state == judged::yes || tensor.state == judged::not_finite;
  return tensor.what == role::gradients && wide;
}

choice_outcome outcome_of(choice c, std::span<const std::size_t> members,
                          std::span<const tensor_evidence> tensors, const need& wanted) {
  choice_outcome result = {.what = c, .bits = spec_of(c).bits};
  std::vector<std::pair<std::size_t, const choice_effect*>> all;
  std::uint64_t elements = 0;
  std::uint64_t scale_bits = 0;
  for (const std::size_t i : members) {
    if (tensors[i].state != judged::yes || stays_as_stored(tensors[i], c)) continue;
    if (const choice_effect* effect = tensors[i].effect(c)) {
      all.emplace_back(i, effect);
      elements += tensors[i].info.count;
      scale_bits += effect->scale_bits;
    }
  }
  result.tried = all.size();
  if (elements != 0) {
    result.bits = spec_of(spec_of(c).format).storage_bits + share(scale_bits, elements);
  }
  std::ranges::sort(all, {}, [](const auto& one) {
    const choice_effect& e = *one.second;
    return std::tuple(e.level(), -share(e.underflow, e.nonzero), one.first);
  });
  double most = 0;
  for (const auto& [i, e] : all) {
    if (!e->meets(wanted)) result.failed.push_back(i);
    if (!result.lowest && e->db()) result.lowest = i;
    if (share(e->underflow, e->nonzero) > most) {
      most = share(e->underflow, e->nonzero);
      result.lossiest = i;
    }
  }
  return result;
}

/// The first outcome without failures, else fp32. Adam's v stays in fp32 unless all of it is stored
/// narrower: bf16, rounded to nearest, never sees updates below 2^-9 of v.
std::size_t cheapest(const role_verdict& r) {
  const auto found = std::ranges::find_if(r.outcomes, [&](const choice_outcome& outcome) {
    const bool stalls = r.what == role::adam_v && outcome.tried != 0;
    return outcome.what == choice::fp32 || (outcome.failed.empty() && !stalls);
  });
  return static_cast<std::size_t>(found - r.outcomes.begin());
}

role_verdict verdict_of(role r, std::span<const tensor_evidence> tensors, const need& wanted) {
  role_verdict result = {.what = r};
  bool any_fp8 = false;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const tensor_evidence& tensor = tensors[i];
    if (tensor.what != r) continue;
    result.tensors.push_back(i);
    result.values += tensor.info.count;
    if (tensor.state != judged::yes) continue;
    ++result.judged;
    result.vectors += tensor.is_vector() ? 1u : 0u;
    any_fp8 = any_fp8 || tensor.takes_fp8();
  }
  if (result.judged == 0) return result;
  for (const choice c : choices_for(r)) {
    if (is_recipe(c) && !any_fp8) continue;  // nothing to quantize
    result.outcomes.push_back(outcome_of(c, result.tensors, tensors, wanted));
  }
  std::ranges::stable_sort(result.outcomes,
                           [](const auto& a, const auto& b) { return a.bits < b.bits; });
  result.chosen = cheapest(result);
  result.met = result.outcomes[*result.chosen].failed.empty();
  return result;
}

/// The largest share that fp16 without a loss scale or the role's choice loses.
double largest_loss(const verdict& v, const tensor_evidence& tensor) {
  const scale_loss fp16 = loss_at(tensor.stats.binades, 0);
  const double most = share(fp16.underflow + fp16.overflow, tensor.stats.nonzero());
  const choice_effect* chosen = chosen_effect(v, tensor);
  return chosen == nullptr ? most : std::max(most, share(chosen->underflow, chosen->nonzero));
}

}  // namespace

std::optional<outlier_channel> outlier_among(std::span<const double> amaxes) {
  constexpr std::size_t fewest = 8;
  constexpr double stands_out = 16.0;
  if (amaxes.size() < fewest) return std::nullopt;
  const auto largest = std::ranges::max_element(amaxes);
  std::vector<double> sorted(amaxes.begin(), amaxes.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  if (*middle <= 0 || *largest < stands_out * *middle) return std::nullopt;
  return outlier_channel{static_cast<std::uint64_t>(largest - amaxes.begin()), *largest / *middle};
}

std::map<int, std::uint64_t> exponents_of(std::span<const tensor_evidence> tensors) {
  std::map<int, std::uint64_t> exponents;
  for (const tensor_evidence& one : tensors) {
    for (const auto& [exponent, counts] : one.stats.binades) exponents[exponent] += counts.all;
  }
  return exponents;
}

std::optional<double> choice_effect::db() const {
  if (!(noise > 0) && underflow + overflow == 0) return std::nullopt;
  // Squares of tiny elements may all be 0: the ratio is then a bound from below.
  const double ratio = signal / std::max(noise, std::numeric_limits<double>::min());
  return signal > 0 && std::isfinite(ratio) ? 10.0 * std::log10(ratio) : 0.0;
}

std::optional<loss_scale_verdict> loss_scale_of(std::span<const tensor_evidence> tensors,
                                                const need& wanted) {
  binades all;
  std::optional<std::size_t> limit;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!is_gradient(tensors[i]) || tensors[i].stats.binades.empty()) continue;
    for (const auto& [exponent, counts] : tensors[i].stats.binades) all[exponent].add(counts);
    if (!limit || tensors[i].stats.amax > tensors[*limit].stats.amax) limit = i;
  }
  if (!limit) return std::nullopt;
  const int best =
      best_scale_log2(*tensors[*limit].stats.amax, format_id::fp16).value_or(smallest_scale_log2);
  loss_scale_verdict result = {.limit = *limit};
  for (const auto& [exponent, counts] : all) {
    constexpr int smallest_bf16 = -133;
    constexpr int smallest_fp32 = -149;
    constexpr int largest = 126;  // 2^128 - 2^119 and more overflow in bf16
    result.nonzero += counts.all;
    const bool in_range = exponent <= largest;
    result.bf16_holds_all = result.bf16_holds_all && in_range && exponent >= smallest_bf16;
    result.fp32_holds_all = result.fp32_holds_all && in_range && exponent >= smallest_fp32;
  }
  result.without = loss_at(all, 0);
  result.best = loss_at(all, best);
  for (const int step : {-4, -2, -1, 0, 1}) {
    const int log2 = best + step;
    if (log2 < smallest_scale_log2 || log2 > largest_scale_log2) continue;
    result.neighbours.push_back(loss_at(all, log2));
  }
  const auto allowed = [&](int log2) {
    return std::ranges::all_of(tensors, [&](const tensor_evidence& t) {
      return !is_gradient(t) ||
             (log2 >= t.enough_log2.value_or(log2) &&
              wanted.allows(loss_at(t.stats.binades, log2).underflow, t.stats.nonzero()));
    });
  };
  result.needed = result.without.overflow != 0 || !allowed(0);
  if (result.best.overflow != 0) return result;
  for (int low = best; low >= smallest_scale_log2 && allowed(low); --low) result.enough = low;
  return result;
}

std::optional<std::size_t> worst_gradient(std::span<const tensor_evidence> tensors, int log2,
                                          std::uint64_t scale_loss::*lost) {
  std::optional<std::size_t> worst;
  double most = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!is_gradient(tensors[i])) continue;
    const cast_statistics& stats = tensors[i].stats;
    const double part = share(loss_at(stats.binades, log2).*lost, stats.nonzero());
    if (part <= most) continue;
    most = part;
    worst = i;
  }
  return worst;
}

// --- Tensors that need attention -----------------------------------------------------------------

namespace {

bool is_one_scale(choice c) { return c == choice::e4m3_tensor || c == choice::e5m2_tensor; }

/// Outlier channels of tensors that fail the need with one scale.
void add_outliers(const verdict& v, std::vector<finding>& found) {
  for (const role_verdict& r : v.roles) {
    if (r.what == role::gradients) continue;  // their channels differ by nature
    for (const choice_outcome& outcome : r.outcomes) {
      if (outcome.what != choice::e4m3_tensor) continue;
      for (const std::size_t i : outcome.failed) {
        if (!v.tensors[i].outlier) continue;
        finding f = {finding_kind::outlier, i, outcome.what, outcome.what};
        for (const choice_outcome& better : r.outcomes) {
          const choice_effect* effect = v.tensors[i].effect(better.what);
          if (is_one_scale(better.what) || effect == nullptr) continue;
          f.better = better.what;
          if (effect->meets(v.wanted)) break;
        }
        found.push_back(f);
      }
    }
  }
}

/// The gradients that lose the most in fp16 at scale 2^log2, if that is more than the need allows.
void add_underflows(const verdict& v, int log2, finding_kind kind, std::vector<finding>& found) {
  constexpr std::size_t most = 3;  // a loss scale helps all of them at once
  std::vector<finding> all;
  for (std::size_t i = 0; i < v.tensors.size(); ++i) {
    const tensor_evidence& tensor = v.tensors[i];
    if (!is_gradient(tensor)) continue;
    const scale_loss loss = loss_at(tensor.stats.binades, log2);
    if (v.wanted.allows(loss.underflow, tensor.stats.nonzero())) continue;
    all.push_back({.kind = kind, .tensor = i, .loss = loss});
  }
  std::ranges::stable_sort(all, std::greater(), [&](const finding& f) {
    return share(f.loss.underflow, v.tensors[f.tensor].stats.nonzero());
  });
  if (all.size() > most) all.resize(most);
  found.insert(found.end(), all.begin(), all.end());
}

/// Tensors that fail a choice cheaper than their role's, where at least three times as many meet
/// it. The cheapest such choice counts.
void add_exceptions(const verdict& v, std::vector<finding>& found) {
  for (const role_verdict& r : v.roles) {
    if (!r.chosen) continue;
    for (std::size_t k = 0; k < *r.chosen; ++k) {
      const choice_outcome& outcome = r.outcomes[k];
      const std::size_t good = outcome.tried - outcome.failed.size();
      if (outcome.failed.empty() || good < 3 * outcome.failed.size()) continue;
      for (const std::size_t i : outcome.failed) {
        found.push_back({.kind = finding_kind::needs_more,
                         .tensor = i,
                         .cheaper = outcome.what,
                         .others = good});
      }
      break;
    }
  }
}

/// Finds tensors with NaN or infinities, outlier channels, gradients that underflow, and tensors
/// that alone force their role to a wider format. One finding a tensor, most urgent first.
///
/// @param v  a verdict with roles and loss scale
std::vector<finding> findings_of(const verdict& v) {
  std::vector<finding> found;
  for (std::size_t i = 0; i < v.tensors.size(); ++i) {
    if (v.tensors[i].has_nonfinite()) found.push_back({finding_kind::not_finite, i});
  }
  add_outliers(v, found);
  if (v.loss_scale) {
    add_underflows(v, v.loss_scale->best.log2, finding_kind::still_underflows, found);
    add_underflows(v, 0, finding_kind::underflows, found);
  }
  add_exceptions(v, found);
  std::set<std::size_t> seen;  // a tensor that has a finding gets no second
  std::erase_if(found, [&](const finding& f) { return !seen.insert(f.tensor).second; });
  return found;
}

}  // namespace

verdict verdict_on(std::span<const tensor_evidence> tensors, const need& wanted) {
  verdict result = {
      .tensors = tensors, .wanted = wanted, .loss_scale = loss_scale_of(tensors, wanted)};
  for (int r = 0; r < role_count; ++r) {
    role_verdict one = verdict_of(static_cast<role>(r), tensors, wanted);
    if (!one.tensors.empty()) result.roles.push_back(std::move(one));
  }
  result.findings = findings_of(result);
  for (std::size_t i = 0; i < tensors.size(); ++i) result.order.push_back(i);
  std::ranges::stable_sort(result.order, std::greater(), [&](std::size_t i) {
    return std::pair(tensors[i].has_nonfinite(), largest_loss(result, tensors[i]));
  });
  return result;
}

std::optional<choice> choice_of(const verdict& v, const tensor_evidence& tensor) {
  if (tensor.state != judged::yes) return std::nullopt;
  for (const role_verdict& r : v.roles) {
    if (r.what != tensor.what || !r.met) continue;
    const choice c = r.outcomes[*r.chosen].what;
    if (!stays_as_stored(tensor, c)) return c;
  }
  return std::nullopt;
}

const choice_effect* chosen_effect(const verdict& v, const tensor_evidence& tensor) {
  const auto c = choice_of(v, tensor);
  return c ? tensor.effect(*c) : nullptr;
}

}  // namespace fpinspect
