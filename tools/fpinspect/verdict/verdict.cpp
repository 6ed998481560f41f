// The verdict on a set of tensors: roles and the order of tensors.
#include "fpinspect/verdict/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace fpinspect {
namespace {

/// The SQNR as a number to compare: infinite if no element changed.
double level(const kept& k) { return k.db.value_or(std::numeric_limits<double>::infinity()); }

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

choice_outcome outcome_of(choice c, std::span<const std::size_t> members,
                          std::span<const tensor_evidence> tensors, const need& wanted) {
  choice_outcome result = {.what = c, .bits = spec_of(c).bits};
  std::vector<std::pair<std::size_t, kept>> all;
  std::uint64_t elements = 0;
  std::uint64_t scale_bits = 0;
  for (const std::size_t i : members) {
    if (tensors[i].state != judged::yes || stays_as_stored(tensors[i], c)) continue;
    if (const choice_effect* effect = tensors[i].effect(c)) {
      all.emplace_back(i, kept_by(*effect, tensors[i].nonzero));
      elements += tensors[i].count;
      scale_bits += effect->scale_bits;
    }
  }
  result.tried = all.size();
  if (elements != 0) {
    result.bits = samebits::spec_of(spec_of(c).format).storage_bits + share(scale_bits, elements);
  }
  const auto worse = [](const auto& a, const auto& b) {
    return std::tuple(level(a.second), -share(a.second.underflow, a.second.nonzero), a.first) <
           std::tuple(level(b.second), -share(b.second.underflow, b.second.nonzero), b.first);
  };
  std::sort(all.begin(), all.end(), worse);
  double most = 0;
  for (const auto& [i, k] : all) {
    if (!meets(k, wanted)) result.failed.push_back(i);
    if (!result.lowest && k.db) result.lowest = i;
    if (share(k.underflow, k.nonzero) > most) {
      most = share(k.underflow, k.nonzero);
      result.lossiest = i;
    }
  }
  return result;
}

/// The first outcome without failures, else fp32. Adam's v stays in fp32 unless all of it is stored
/// narrower: bf16, rounded to nearest, never sees updates below 2^-9 of v.
std::size_t cheapest(const role_verdict& r) {
  const auto found =
      std::find_if(r.outcomes.begin(), r.outcomes.end(), [&](const choice_outcome& outcome) {
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
    result.values += tensor.count;
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
  std::stable_sort(result.outcomes.begin(), result.outcomes.end(),
                   [](const auto& a, const auto& b) { return a.bits < b.bits; });
  result.chosen = cheapest(result);
  result.met = result.outcomes[*result.chosen].failed.empty();
  return result;
}

/// The largest share that fp16 without a loss scale or the role's choice loses.
double largest_loss(const verdict& v, const tensor_evidence& tensor) {
  const scale_loss fp16 = loss_at(tensor.magnitudes, 0);
  const double most = share(fp16.underflow + fp16.overflow, tensor.nonzero);
  const choice_effect* chosen = chosen_effect(v, tensor);
  return chosen == nullptr ? most : std::max(most, share(chosen->underflow, tensor.nonzero));
}

}  // namespace

kept kept_by(const choice_effect& effect, std::uint64_t nonzero) {
  kept result = {{}, effect.underflow, effect.overflow, nonzero, effect.negligible};
  if (effect.noise > 0 || effect.underflow + effect.overflow != 0) {
    // Squares of tiny elements may all be 0: the ratio is then a bound from below.
    const double noise = std::max(effect.noise, std::numeric_limits<double>::min());
    const bool usable = effect.signal > 0 && std::isfinite(effect.signal / noise);
    result.db = usable ? 10.0 * std::log10(effect.signal / noise) : 0.0;
  }
  return result;
}

bool loses_little(const kept& k, const need& wanted) {
  return wanted.allows(k.underflow - k.negligible, k.nonzero);
}

bool meets(const kept& k, const need& wanted) {
  return k.overflow == 0 && level(k) >= wanted.db && loses_little(k, wanted);
}

bool stays_as_stored(const tensor_evidence& tensor, choice c) {
  return (is_recipe(c) && !tensor.takes_fp8()) || tensor.bits <= spec_of(c).bits;
}

bool is_gradient(const tensor_evidence& tensor) {
  const bool wide = tensor.state == judged::yes || tensor.state == judged::not_finite;
  return tensor.what == role::gradients && wide;
}

std::optional<loss_scale_verdict> loss_scale_of(std::span<const tensor_evidence> tensors,
                                                const need& wanted) {
  binades all;
  std::optional<std::size_t> limit;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!is_gradient(tensors[i]) || tensors[i].magnitudes.empty()) continue;
    add(all, tensors[i].magnitudes);
    if (!limit || tensors[i].amax > tensors[*limit].amax) limit = i;
  }
  const auto best = best_scale_log2(all);
  if (!best) return std::nullopt;
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
  result.best = loss_at(all, *best);
  for (const int step : {-4, -2, -1, 0, 1}) {
    const int log2 = *best + step;
    if (log2 < smallest_scale_log2 || log2 > largest_scale_log2) continue;
    result.neighbours.push_back(loss_at(all, log2));
  }
  const auto allowed = [&](int log2) {
    return std::all_of(tensors.begin(), tensors.end(), [&](const tensor_evidence& t) {
      return !is_gradient(t) || (log2 >= t.enough_log2.value_or(log2) &&
                                 wanted.allows(loss_at(t.magnitudes, log2).underflow, t.nonzero));
    });
  };
  result.needed = result.without.overflow != 0 || !allowed(0);
  if (result.best.overflow != 0) return result;
  for (int low = *best; low >= smallest_scale_log2 && allowed(low); --low) result.enough = low;
  return result;
}

std::optional<std::size_t> worst_gradient(std::span<const tensor_evidence> tensors, int log2,
                                          std::uint64_t scale_loss::*lost) {
  std::optional<std::size_t> worst;
  double most = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!is_gradient(tensors[i])) continue;
    const double part = share(loss_at(tensors[i].magnitudes, log2).*lost, tensors[i].nonzero);
    if (part <= most) continue;
    most = part;
    worst = i;
  }
  return worst;
}

verdict verdict_on(std::span<const tensor_evidence> tensors, const need& wanted) {
  verdict result = {.wanted = wanted, .loss_scale = loss_scale_of(tensors, wanted)};
  for (int r = 0; r < role_count; ++r) {
    role_verdict one = verdict_of(static_cast<role>(r), tensors, wanted);
    if (!one.tensors.empty()) result.roles.push_back(std::move(one));
  }
  result.findings = findings_of(result, tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) result.order.push_back(i);
  std::stable_sort(result.order.begin(), result.order.end(), [&](std::size_t a, std::size_t b) {
    const auto key = [&](std::size_t i) {
      return std::pair(tensors[i].nan + tensors[i].inf != 0, largest_loss(result, tensors[i]));
    };
    return key(a) > key(b);
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
