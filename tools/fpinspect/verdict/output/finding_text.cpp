// Findings of the verdict as sentences.
#include <string>
#include <vector>

#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/formats/describe.hpp"
#include "fpinspect/verdict/output/verdict_sentences.hpp"

namespace fpinspect {
namespace {

/// The coordinates of an element: "[17, 254]".
std::string position(std::uint64_t index, std::span<const std::uint64_t> shape) {
  std::vector<std::uint64_t> at(shape.size());
  for (std::size_t k = shape.size(); k-- > 0;) {
    at[k] = index % shape[k];
    index /= shape[k];
  }
  return cat("[", comma_separated(at), "]");
}

std::string not_finite_text(const tensor_evidence& tensor) {
  std::string counts;
  if (tensor.nan != 0) counts = cat(tensor.nan, " NaN");
  if (tensor.inf != 0) counts += cat(counts.empty() ? "" : " and ", tensor.inf, " Inf");
  return cat(counts, ", first at ", position(*tensor.first_nonfinite, tensor.shape));
}

/// "loses 9.8 %" or "keeps 12.1 dB": what fails the need, else what is lost.
std::string effect_text(const tensor_evidence& tensor, choice c, const need& wanted) {
  const choice_effect* effect = tensor.effect(c);
  if (effect == nullptr) return {};
  const kept k = kept_by(*effect, tensor.nonzero);
  const bool noisy = k.db && *k.db < wanted.db && loses_little(k, wanted);
  if (noisy) return cat("keeps ", fixed(*k.db, 1), " dB");
  return cat("loses ", percent(k.underflow, k.nonzero));
}

std::string outlier_text(const finding& f, const tensor_evidence& tensor, const need& wanted) {
  const outlier_channel& o = *tensor.outlier;
  return cat("channel ", o.channel, " is ", fixed(o.ratio, 0),
             " x the median channel: ", spec_of(f.cheaper).name, " ",
             effect_text(tensor, f.cheaper, wanted), "; ", spec_of(f.better).name, " ",
             effect_text(tensor, f.better, wanted));
}

/// Why the loss scale is no larger.
std::string limit_text(const finding& f, const loss_scale_verdict& l,
                       std::span<const tensor_evidence> tensors) {
  if (l.best.log2 == largest_scale_log2) return ", the largest that loss scalers hold";
  return cat(", the limit set by ",
             l.limit == f.tensor ? "its own largest value" : tensors[l.limit].name);
}

}  // namespace

std::string finding_text(const finding& f, const verdict& v,
                         std::span<const tensor_evidence> tensors) {
  const tensor_evidence& tensor = tensors[f.tensor];
  switch (f.kind) {
    case finding_kind::not_finite: return not_finite_text(tensor);
    case finding_kind::outlier: return outlier_text(f, tensor, v.wanted);
    case finding_kind::underflows:
      return cat("fp16 without a loss scale loses ", percent(f.loss.underflow, tensor.nonzero));
    case finding_kind::still_underflows:
      return cat("fp16 still loses ", percent(f.loss.underflow, tensor.nonzero), " at ",
                 power_text(f.loss.log2), limit_text(f, *v.loss_scale, tensors));
    case finding_kind::needs_more:
      return cat(spec_of(f.cheaper).name, " ", effect_text(tensor, f.cheaper, v.wanted),
                 "; enough for ", f.others, " others of its role");
  }
  return {};
}

}  // namespace fpinspect
