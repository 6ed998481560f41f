// Tensors of a verdict that need attention: implementation.
#include "fpinspect/verdict/verdict.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace fpinspect {
namespace {

/// Collects findings; a tensor that has one gets no second.
class collector {
 public:
  void add(const finding& f) {
    if (seen_.insert(f.tensor).second) found_.push_back(f);
  }
  [[nodiscard]] std::vector<finding> take() { return std::move(found_); }

 private:
  std::set<std::size_t> seen_;
  std::vector<finding> found_;
};

bool is_one_scale(choice c) { return c == choice::e4m3_tensor || c == choice::e5m2_tensor; }

/// Outlier channels of tensors that fail the need with one scale.
void add_outliers(const verdict& v, std::span<const tensor_evidence> tensors, collector& found) {
  for (const role_verdict& r : v.roles) {
    if (r.what == role::gradients) continue;  // their channels differ by nature
    for (const choice_outcome& outcome : r.outcomes) {
      if (outcome.what != choice::e4m3_tensor) continue;
      for (const std::size_t i : outcome.failed) {
        if (!tensors[i].outlier) continue;
        finding f = {finding_kind::outlier, i, outcome.what, outcome.what};
        for (const choice_outcome& better : r.outcomes) {
          const choice_effect* effect = tensors[i].effect(better.what);
          if (is_one_scale(better.what) || effect == nullptr) continue;
          f.better = better.what;
          if (meets(kept_by(*effect, tensors[i].nonzero), v.wanted)) break;
        }
        found.add(f);
      }
    }
  }
}

/// The gradients that lose the most in fp16 at scale 2^log2, if that is more than the need allows.
void add_underflows(const verdict& v, std::span<const tensor_evidence> tensors, int log2,
                    finding_kind kind, collector& found) {
  constexpr std::size_t most = 3;  // a loss scale helps all of them at once
  std::vector<finding> all;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const tensor_evidence& tensor = tensors[i];
    if (!is_gradient(tensor)) continue;
    const scale_loss loss = loss_at(tensor.magnitudes, log2);
    if (v.wanted.allows(loss.underflow, tensor.nonzero)) continue;
    all.push_back({.kind = kind, .tensor = i, .loss = loss});
  }
  std::stable_sort(all.begin(), all.end(), [&](const finding& a, const finding& b) {
    const auto share = [&](const finding& f) {
      return static_cast<double>(f.loss.underflow) / static_cast<double>(tensors[f.tensor].nonzero);
    };
    return share(a) > share(b);
  });
  if (all.size() > most) all.resize(most);
  for (const finding& f : all) found.add(f);
}

/// Tensors that fail a choice cheaper than their role's, where at least three times as many meet
/// it. The cheapest such choice counts.
void add_exceptions(const verdict& v, collector& found) {
  for (const role_verdict& r : v.roles) {
    if (!r.chosen) continue;
    for (std::size_t k = 0; k < *r.chosen; ++k) {
      const choice_outcome& outcome = r.outcomes[k];
      const std::size_t good = outcome.tried - outcome.failed.size();
      if (outcome.failed.empty() || good < 3 * outcome.failed.size()) continue;
      for (const std::size_t i : outcome.failed) {
        found.add({.kind = finding_kind::needs_more,
                   .tensor = i,
                   .cheaper = outcome.what,
                   .others = good});
      }
      break;
    }
  }
}

}  // namespace

std::vector<finding> findings_of(const verdict& v, std::span<const tensor_evidence> tensors) {
  collector found;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].nan + tensors[i].inf != 0) found.add({finding_kind::not_finite, i});
  }
  add_outliers(v, tensors, found);
  if (v.loss_scale) {
    add_underflows(v, tensors, v.loss_scale->best.log2, finding_kind::still_underflows, found);
    add_underflows(v, tensors, 0, finding_kind::underflows, found);
  }
  add_exceptions(v, found);
  return found.take();
}

}  // namespace fpinspect
