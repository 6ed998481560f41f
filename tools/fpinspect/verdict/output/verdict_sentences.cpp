// The verdict as sentences and figures in text, without layout: for the terminal and for reports.
#include "fpinspect/verdict/output/verdict_text.hpp"

#include "fpinspect/formats/describe.hpp"
#include "fpinspect/output/progress.hpp"
#include "fpinspect/tensors/source/source.hpp"

namespace fpinspect {

// --- The verdict as sentences --------------------------------------------------------------------

namespace {

bool is_noisy(const choice_effect& e, const need& wanted) { return e.level() < wanted.db; }

/// What a choice that fails does to the worst tensor: "3.10 % lost in grad.fc1".
std::string failure_text(const verdict& v, const choice_outcome& outcome) {
  const std::size_t worst = outcome.failed.front();
  const choice_effect& k = *v.tensors[worst].effect(outcome.what);
  std::string text;
  if (k.overflow != 0) {
    text = cat(k.overflow, k.overflow == 1 ? " value overflows in " : " values overflow in ");
  } else if (is_noisy(k, v.wanted)) {
    text = cat(db_text(k.db()), " in ");
  } else {
    text = cat(percent(k.underflow, k.nonzero), " lost in ");
  }
  text += v.tensors[worst].name;
  const std::size_t others = outcome.failed.size() - 1;
  if (others != 0) text += cat(", ", others, others == 1 ? " more fails" : " more fail");
  return text;
}

/// The next cheaper choice that fails, or that Adam's v does not take; null if there is none.
const choice_outcome* next_cheaper(const role_verdict& r) {
  if (!r.chosen) return nullptr;
  for (std::size_t k = *r.chosen + (r.met ? 0 : 1); k-- > 0;) {
    const choice_outcome& cheaper = r.outcomes[k];
    const bool stalls = r.what == role::adam_v && cheaper.tried != 0;
    if (!cheaper.failed.empty() || stalls) return &cheaper;
  }
  return nullptr;
}

/// Why the role does not have the next cheaper choice.
std::string reason(const verdict& v, const role_verdict& r) {
  const choice_outcome* cheaper = next_cheaper(r);
  if (cheaper == nullptr) return {};
  return cat("not ", spec_of(cheaper->what).name, ": ",
             cheaper->failed.empty() ? "rounding to nearest drops updates below 2^-9 of v"
                                     : failure_text(v, *cheaper));
}

/// The largest need in whole dB that all tensors meet; nothing if some lose too many values.
std::optional<int> admitted_db(const verdict& v, const choice_outcome& outcome) {
  double lowest = v.wanted.db;
  for (const std::size_t i : outcome.failed) {
    const choice_effect& k = *v.tensors[i].effect(outcome.what);
    if (k.overflow != 0 || !k.loses_little(v.wanted)) return std::nullopt;
    lowest = std::min(lowest, k.level());
  }
  return lowest < 1 ? std::nullopt : std::optional(static_cast<int>(lowest));
}

/// Tensors of the role that the choice does not concern.
std::string exceptions_text(const role_verdict& r, std::span<const tensor_evidence> tensors,
                            choice chosen) {
  std::string text;
  const auto add = [&](std::size_t count, const char* what) { add_count(text, count, what, "; "); };
  const auto count = [&](judged state) {
    return static_cast<std::size_t>(
        std::ranges::count_if(r.tensors, [&](std::size_t i) { return tensors[i].state == state; }));
  };
  if (is_recipe(chosen)) {
    add(r.vectors, "of rank 0 or 1 as stored");
    const auto unquantized = std::ranges::count_if(r.tensors, [&](std::size_t i) {
      return tensors[i].state == judged::yes && tensors[i].is_unquantized &&
             !tensors[i].is_vector();
    });
    add(static_cast<std::size_t>(unquantized), "of embedding, head or gate as stored");
  }
  add(count(judged::narrow_already), "of 8 bits or fewer already");
  add(count(judged::integers), "of integers");
  add(count(judged::not_read), "not read");
  add(count(judged::not_numbers), "without numbers");
  add(count(judged::not_finite), "with NaN or Inf");
  return text.empty() ? text : cat("besides: ", text);
}

/// What was assumed: the matrices of convolution weights, or the losses of optimizer state that the
/// need does not count, if the choice has too many of them.
std::string rule_text(const verdict& v, const role_verdict& r, choice chosen) {
  const auto reshaped = std::ranges::count_if(r.tensors, [&](std::size_t i) {
    return v.tensors[i].is_reshaped() && v.tensors[i].state == judged::yes;
  });
  if (reshaped != 0) return cat("as [out, rest]: ", reshaped, " of rank above 2");
  const bool uncounted = std::ranges::any_of(r.tensors, [&](std::size_t i) {
    const choice_effect* effect = v.tensors[i].effect(chosen);
    return effect != nullptr && effect->negligible != 0 &&
           !v.wanted.allows(effect->underflow, effect->nonzero);
  });
  return uncounted ? "not counted: lost values below 2^-24 of their tensor's RMS" : "";
}

/// "4 values overflow in lm_head", if any overflow. The tensor that overflows first is named.
std::string overflow_note(const scale_loss& loss, const loss_scale_verdict& l,
                          std::span<const tensor_evidence> tensors) {
  if (loss.overflow == 0) return {};
  const bool alone = loss_at(tensors[l.limit].stats.binades, loss.log2).overflow == loss.overflow;
  return cat(", ", loss.overflow,
             loss.overflow == 1 ? " value overflows in " : " values overflow in ",
             tensors[l.limit].name, alone ? "" : " and others");
}

/// Formats in which the gradients need no loss scale, where fp16 needs one.
std::string other_formats_note(const loss_scale_verdict& l) {
  if (!l.needed) return {};
  if (l.best.log2 > usual_ceiling_log2) {
    if (!l.fp32_holds_all) return {};
    return cat("above ", power_text(usual_ceiling_log2), ": fp32 ",
               l.bf16_holds_all ? "or bf16" : "gradients", " would serve");
  }
  return l.bf16_holds_all ? "bf16 gradients need none" : "";
}

}  // namespace

std::string need_sentence(const need& wanted) {
  const std::string lost = wanted.underflow_percent > 0
                               ? cat("fewer than ", general(wanted.underflow_percent, 4), " %")
                               : "none";
  return cat("Cheapest choice that keeps ", general(wanted.db, 4), " dB and loses ", lost,
             " of the non-zero values in every tensor (--need). Figures: the worst tensor's.");
}

role_summary summary_of(const verdict& v, const role_verdict& r) {
  role_summary result;
  if (!r.chosen) {
    result.choice = "not judged";
    result.besides = exceptions_text(r, v.tensors, choice::fp32);
    return result;
  }
  const choice_outcome& outcome = r.outcomes[*r.chosen];
  const std::string_view name = spec_of(outcome.what).name;
  result.reason = reason(v, r);
  result.rule = rule_text(v, r, outcome.what);
  result.besides = exceptions_text(r, v.tensors, outcome.what);
  if (!r.met) {
    result.choice = "as stored: no choice meets the need";
  } else if (outcome.tried == 0 && outcome.what != choice::fp32) {
    result.choice = cat("as stored, no wider than ", name);
  } else if (outcome.tried == 0) {
    result.choice = name;
    result.stored = "as stored";
  } else {
    result.choice = name;
    std::optional<double> db;
    if (outcome.lowest) db = v.tensors[*outcome.lowest].effect(outcome.what)->db();
    result.db = db_text(db);
    result.lost = "0 %";
    if (outcome.lossiest) {
      const choice_effect& k = *v.tensors[*outcome.lossiest].effect(outcome.what);
      result.lost = percent(k.underflow, k.nonzero);
    }
    result.bits = general(outcome.bits, 3);
  }
  return result;
}

size_change size_of(const verdict& v) {
  size_change size;
  for (const tensor_evidence& tensor : v.tensors) {
    const choice_effect* effect = chosen_effect(v, tensor);
    size.before += tensor.info.bytes;
    if (effect == nullptr) {
      size.after += tensor.info.bytes;
      continue;
    }
    const int bits = spec_of(spec_of(effect->what).format).storage_bits;
    size.after +=
        (tensor.info.count * static_cast<std::uint64_t>(bits) + effect->scale_bits + 7) / 8;
  }
  return size;
}

std::string size_change_text(const size_change& size) {
  return cat(bytes_text(static_cast<double>(size.before)), " as stored, ",
             bytes_text(static_cast<double>(size.after)), " with these choices");
}

int fraction_bits_for(double db) {
  // In the mean the squares of significands in [1, 2) are 7/3, and those of errors 2^(-2 bits) / 12.
  const double bits = (db - 10 * std::log10(7.0 / 3.0 * 12.0)) / (20 * std::log10(2.0));
  constexpr double most = 1e6;
  return static_cast<int>(std::ceil(std::clamp(bits, 0.0, most)));
}

std::optional<refusal> refusal_of(const verdict& v) {
  for (const role_verdict& r : v.roles) {
    const choice_outcome* cheaper = next_cheaper(r);
    if (cheaper == nullptr || cheaper->failed.empty()) continue;
    const choice_effect& worst = *v.tensors[cheaper->failed.front()].effect(cheaper->what);
    if (worst.overflow != 0 || !is_noisy(worst, v.wanted)) continue;
    const int bits = spec_of(spec_of(cheaper->what).format).mantissa_bits;
    const refusal result = {r.what, cheaper->what, bits < fraction_bits_for(v.wanted.db),
                            admitted_db(v, *cheaper)};
    if (result.lacks_bits || result.admitted_db) return result;
  }
  return std::nullopt;
}

std::string refusal_text(const refusal& r, const need& wanted) {
  const format_id format = spec_of(r.what).format;
  std::string text;
  if (r.lacks_bits) {
    text = cat(general(wanted.db, 4), " dB takes ", fraction_bits_for(wanted.db),
               " fraction bits, ", format, " has ", spec_of(format).mantissa_bits);
  }
  if (!r.admitted_db) return text;
  return cat(text, text.empty() ? "" : "; ", "--need ", *r.admitted_db, "dB admits ",
             text.empty() ? spec_of(r.what).name : "it", " for ", title(r.of));
}

loss_scale_summary summary_of(const loss_scale_verdict& l,
                              std::span<const tensor_evidence> tensors) {
  loss_scale_summary result;
  result.head = l.needed ? power_text(l.best.log2) : "none needed";
  if (l.best.overflow != 0) result.head = "none";
  result.note = other_formats_note(l);
  const auto add = [&](const std::string& scale, const scale_loss& loss) {
    scale_summary one = {scale, "0 %"};
    if (const auto worst = worst_gradient(tensors, loss.log2)) {
      const tensor_evidence& t = tensors[*worst];
      const std::uint64_t nonzero = t.stats.nonzero();
      one.lost = percent(loss_at(t.stats.binades, loss.log2).underflow, nonzero);
      if (nonzero != l.nonzero) {
        one.note = cat(" in ", t.name, ", ", percent(loss.underflow, l.nonzero), " of all");
      }
    }
    one.note += overflow_note(loss, l, tensors);
    if (loss.log2 == l.best.log2 && scale != "none" && loss.overflow == 0) {
      one.note += loss.log2 == largest_scale_log2 ? ", the largest that loss scalers hold"
                                                  : ", the largest without overflow";
    }
    result.scales.push_back(std::move(one));
  };
  add("none", l.without);
  for (const scale_loss& loss : l.neighbours) add(power_text(loss.log2), loss);
  if (l.enough && *l.enough < l.best.log2) {
    const std::string from = l.needed ? cat("from ", power_text(*l.enough), " to ") : "up to ";
    result.closing = cat("Every scale ", from, power_text(l.best.log2), " meets the need.");
  }
  if (!l.enough) result.closing = "No scale without overflow meets the need in every tensor.";
  return result;
}

tensor_summary summary_of(const verdict& v, const tensor_evidence& tensor) {
  const scale_loss fp16 = loss_at(tensor.stats.binades, 0);
  tensor_summary result;
  result.fp16 = percent(fp16.underflow + fp16.overflow, tensor.stats.nonzero());
  const choice_effect* effect = chosen_effect(v, tensor);
  if (tensor.state != judged::yes) {
    result.db = tensor.state == judged::not_read ? "not read" : "not judged";
    result.lost = "-";
  } else if (effect == nullptr) {
    result.db = "as stored";
    result.lost = "0 %";
  } else {
    result.db = db_text(effect->db());
    result.lost = percent(effect->underflow, effect->nonzero);
  }
  return result;
}

// --- Findings of the verdict as sentences --------------------------------------------------------

namespace {

std::string not_finite_text(const tensor_evidence& tensor) {
  std::string counts;
  add_count(counts, tensor.stats.nan, "NaN");
  add_count(counts, tensor.stats.inf, "Inf", " and ");
  return cat(counts, ", first at ",
             position_text(*tensor.stats.first_nonfinite, tensor.info.shape));
}

/// "loses 9.8 %" or "keeps 12.1 dB": what fails the need, else what is lost.
std::string effect_text(const tensor_evidence& tensor, choice c, const need& wanted) {
  const choice_effect* effect = tensor.effect(c);
  if (effect == nullptr) return {};
  if (is_noisy(*effect, wanted) && effect->loses_little(wanted)) {
    return cat("keeps ", fixed(*effect->db(), 1), " dB");
  }
  return cat("loses ", percent(effect->underflow, effect->nonzero));
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

std::string finding_text(const finding& f, const verdict& v) {
  const tensor_evidence& tensor = v.tensors[f.tensor];
  switch (f.kind) {
    case finding_kind::not_finite: return not_finite_text(tensor);
    case finding_kind::outlier: return outlier_text(f, tensor, v.wanted);
    case finding_kind::underflows:
      return cat("fp16 without a loss scale loses ",
                 percent(f.loss.underflow, tensor.stats.nonzero()));
    case finding_kind::still_underflows:
      return cat("fp16 still loses ", percent(f.loss.underflow, tensor.stats.nonzero()), " at ",
                 power_text(f.loss.log2), limit_text(f, *v.loss_scale, v.tensors));
    case finding_kind::needs_more:
      return cat(spec_of(f.cheaper).name, " ", effect_text(tensor, f.cheaper, v.wanted),
                 "; enough for ", f.others, " others of its role");
  }
  return {};
}

}  // namespace fpinspect
