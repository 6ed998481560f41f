// The verdict as text: roles, loss scale and the table of tensors.
#include "fpinspect/verdict/verdict_text.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "fpinspect/cli/text.hpp"
#include "fpinspect/formats/describe.hpp"

namespace fpinspect {
namespace {

constexpr std::string_view below_choice = "          ";
constexpr std::string_view more_below = "            ";

/// The text with a newline at the end. Lines that would be too wide are broken at spaces; the
/// following lines are indented.
std::string wrapped(std::string_view text, const terminal& term, std::string_view indent) {
  const auto width = static_cast<std::size_t>(std::clamp(term.width(), 60, 100));
  std::string result;
  std::string line(text);
  while (line.size() > width) {
    const std::size_t start = line.find_first_not_of(' ');
    std::size_t space = line.rfind(' ', width);
    if (space == std::string::npos || space < start) space = line.find(' ', start);
    if (space == std::string::npos) break;
    result += cat(line.substr(0, space), "\n");
    line = cat(indent, line.substr(space + 1));
  }
  return cat(result, line, "\n");
}

std::string db_text(const std::optional<double>& db) {
  return db ? cat(fixed(*db, 1), " dB") : "exact";
}

std::string need_text(const need& wanted) {
  const std::string lost = wanted.underflow_percent > 0
                               ? cat("fewer than ", general(wanted.underflow_percent, 4), " %")
                               : "none";
  return cat("Cheapest choice that keeps ", general(wanted.db, 4), " dB and loses ", lost,
             " of the non-zero\nvalues in every tensor (--need). Figures: the worst tensor's.\n");
}

kept kept_of(std::span<const tensor_evidence> tensors, std::size_t tensor, choice c) {
  return kept_by(*tensors[tensor].effect(c), tensors[tensor].nonzero);
}

/// "31.5 dB   < 0.01 % lost   8.25 bits": SQNR and losses of the worst tensors.
std::string outcome_figures(std::span<const tensor_evidence> tensors,
                            const choice_outcome& outcome) {
  if (outcome.tried == 0) return "as stored";
  std::optional<double> db;
  if (outcome.lowest) db = kept_of(tensors, *outcome.lowest, outcome.what).db;
  std::string lost = "0 %";
  if (outcome.lossiest) {
    const kept k = kept_of(tensors, *outcome.lossiest, outcome.what);
    lost = percent(k.underflow, k.nonzero);
  }
  const std::string bits = cat(general(spec_of(outcome.what).bits, 3), " bits");
  return cat(right(db_text(db), 8), right(lost, 10), " lost", right(bits, 11));
}

/// What a choice that fails does to the worst tensor: "3.10 % lost in grad.fc1".
std::string failure_text(const verdict& v, std::span<const tensor_evidence> tensors,
                         const choice_outcome& outcome) {
  const std::size_t worst = outcome.failed.front();
  const kept k = kept_of(tensors, worst, outcome.what);
  std::string text;
  if (k.overflow != 0) {
    text = cat(k.overflow, k.overflow == 1 ? " value overflows in " : " values overflow in ");
  } else if (k.db && *k.db < v.wanted.db) {
    text = cat(db_text(k.db), " in ");
  } else {
    text = cat(percent(k.underflow, k.nonzero), " lost in ");
  }
  text += tensors[worst].name;
  const std::size_t others = outcome.failed.size() - 1;
  if (others != 0) text += cat(", ", others, others == 1 ? " more fails" : " more fail");
  return text;
}

/// The next cheaper choice that fails, and by what.
std::string reason(const verdict& v, std::span<const tensor_evidence> tensors,
                   const role_verdict& r, const terminal& term) {
  for (std::size_t k = *r.chosen + (r.met ? 0 : 1); k-- > 0;) {
    const choice_outcome& cheaper = r.outcomes[k];
    const std::string head = cat(below_choice, "not ", spec_of(cheaper.what).name, ": ");
    if (!cheaper.failed.empty()) {
      return wrapped(cat(head, failure_text(v, tensors, cheaper)), term, more_below);
    }
    if (r.what == role::adam_v && cheaper.tried != 0) {
      return cat(head, "rounding to nearest drops updates below 2^-9 of v\n");
    }
  }
  return {};
}

/// Tensors of the role that the choice does not concern.
std::string exceptions_text(const role_verdict& r, std::span<const tensor_evidence> tensors,
                            choice chosen, const terminal& term) {
  std::string text;
  const auto add = [&](std::size_t count, const char* what) {
    if (count != 0) text += cat(text.empty() ? "" : "; ", count, " ", what);
  };
  const auto count = [&](judged state) {
    return static_cast<std::size_t>(
        std::count_if(r.tensors.begin(), r.tensors.end(),
                      [&](std::size_t i) { return tensors[i].state == state; }));
  };
  if (is_recipe(chosen)) add(r.vectors, "of rank 0 or 1 as stored");
  add(count(judged::narrow_already), "of 8 bits or fewer already");
  add(count(judged::integers), "of integers");
  add(count(judged::not_read), "not read");
  add(count(judged::not_numbers), "without numbers");
  add(count(judged::not_finite), "with NaN or Inf");
  if (text.empty()) return text;
  return wrapped(cat(below_choice, "besides: ", text), term, more_below);
}

std::string role_text(const verdict& v, std::span<const tensor_evidence> tensors,
                      const role_verdict& r, const terminal& term) {
  const std::string head =
      cat("  ", left(title(r.what), 12), right(cat(r.tensors.size()), 5), "  ");
  if (!r.chosen) return cat(head, "not judged\n", exceptions_text(r, tensors, choice::fp32, term));
  const choice_outcome& outcome = r.outcomes[*r.chosen];
  const std::string_view name = spec_of(outcome.what).name;
  std::string chosen = cat(left(name, 25), outcome_figures(tensors, outcome));
  if (outcome.tried == 0 && outcome.what != choice::fp32) {
    chosen = cat("as stored, no wider than ", name);
  }
  if (!r.met) chosen = "as stored: no choice meets the need";
  return cat(head, term.painted(paint::heading, chosen), "\n", reason(v, tensors, r, term),
             exceptions_text(r, tensors, outcome.what, term));
}

/// "4 values overflow in lm_head", if any overflow. The tensor that overflows first is named.
std::string overflow_note(const scale_loss& loss, const loss_scale_verdict& l,
                          std::span<const tensor_evidence> tensors) {
  if (loss.overflow == 0) return {};
  const bool alone = loss_at(tensors[l.limit].magnitudes, loss.log2).overflow == loss.overflow;
  return cat(", ", loss.overflow,
             loss.overflow == 1 ? " value overflows in " : " values overflow in ",
             tensors[l.limit].name, alone ? "" : " and others");
}

std::string loss_scale_text(const loss_scale_verdict& l, std::span<const tensor_evidence> tensors,
                            const terminal& term) {
  const auto line = [&](const std::string& name, const scale_loss& loss) {
    const bool best = loss.log2 == l.best.log2 && name != "none";
    const std::string text =
        cat("  ", left(name, 8), right(percent(loss.underflow, l.nonzero), 10), " lost",
            overflow_note(loss, l, tensors), best ? ", the largest without overflow" : "");
    return wrapped(text, term, "    ");
  };
  const std::string head = l.needed ? power_text(l.best.log2) : "none needed";
  std::string text =
      cat("Loss scale for fp16 gradients: ", term.painted(paint::heading, head),
          l.needed ? "   (bf16 gradients need none)\n" : "\n", line("none", l.without));
  for (const scale_loss& loss : l.neighbours) {
    const int below = l.best.log2 - loss.log2;
    const bool same = below == 1 && loss.underflow == l.best.underflow;
    if (below <= 1 && !same) text += line(power_text(loss.log2), loss);
  }
  if (l.enough && *l.enough < l.best.log2) {
    const std::string from = l.needed ? cat("from ", power_text(*l.enough), " to ") : "up to ";
    text += cat("  Every scale ", from, power_text(l.best.log2), " meets the need.\n");
  }
  return text;
}

std::size_t lines_of(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// At most as many findings as there is room for, but at least three.
///
/// @param room  lines
std::string findings_text(const verdict& v, std::span<const tensor_evidence> tensors,
                          const terminal& term, std::size_t room) {
  constexpr std::size_t fewest = 3;
  if (v.findings.empty()) return "Nothing else needs attention.\n";
  std::string text = term.painted(paint::heading, "Look at these") + "\n";
  for (std::size_t i = 0; i < v.findings.size(); ++i) {
    const finding& f = v.findings[i];
    const std::string one =
        wrapped(cat("  ", tensors[f.tensor].name, ": ", finding_text(f, v, tensors)), term, "    ");
    const std::size_t rest = i + 1 < v.findings.size() ? 1 : 0;  // the line "and 7 more"
    if (i >= fewest && lines_of(text) + lines_of(one) + rest > room) {
      return cat(text, "  and ", v.findings.size() - i, " more: --json\n");
    }
    text += one;
  }
  return text;
}

/// The name is the last column, so that long names leave the others in place.
std::string table_line(std::string_view fp16, std::string_view db, std::string_view lost,
                       std::string_view role, std::string_view name) {
  const std::string figures = cat(right(fp16, 11), right(db, 13), right(lost, 10));
  return cat(figures, name.empty() ? "" : cat("  ", left(role, 11), "  ", name), "\n");
}

/// What a tensor loses in fp16 and in the choice of its role.
struct tensor_losses {
  std::uint64_t fp16 = 0;                 ///< becomes 0 or infinite
  const choice_effect* chosen = nullptr;  ///< null: as stored, or not judged
  bool judged = false;
};

tensor_losses losses_of(const verdict& v, const tensor_evidence& tensor) {
  const scale_loss fp16 = loss_at(tensor.magnitudes, 0);
  const bool is_judged = tensor.state == judged::yes;
  return {fp16.underflow + fp16.overflow, is_judged ? chosen_effect(v, tensor) : nullptr,
          is_judged};
}

std::string tensor_line(const verdict& v, const tensor_evidence& tensor) {
  const tensor_losses losses = losses_of(v, tensor);
  const std::string share = percent(losses.fp16, tensor.nonzero);
  const auto line = [&](std::string_view db, std::string_view lost, std::string_view name) {
    return table_line(share, db, lost, title(tensor.what), name);
  };
  if (tensor.state == judged::not_read) {
    return line("not read", "-", cat(tensor.name, ": ", tensor.unread));
  }
  if (!losses.judged) return line("not judged", "-", tensor.name);
  if (losses.chosen == nullptr) return line("as stored", "0 %", tensor.name);
  const kept k = kept_by(*losses.chosen, tensor.nonzero);
  return line(db_text(k.db), percent(k.underflow, k.nonzero), tensor.name);
}

/// part / whole; "-" if whole is 0.
std::string fraction_text(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return shortest(static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

std::string heading_text(std::span<const tensor_evidence> tensors, const std::string& files) {
  std::uint64_t values = 0;
  for (const tensor_evidence& tensor : tensors) values += tensor.count;
  return cat(files, ": ", tensors.size(), tensors.size() == 1 ? " tensor" : " tensors", ", ",
             values, values == 1 ? " value\n\n" : " values\n\n");
}

std::string verdict_text(const verdict& v, std::span<const tensor_evidence> tensors,
                         const terminal& term) {
  constexpr std::size_t screen = 24;
  constexpr std::size_t around = 4;  // the lines of the heading and the last line, with blank lines
  std::string text = need_text(v.wanted);
  for (const role_verdict& r : v.roles) text += role_text(v, tensors, r, term);
  text += "\n";
  if (v.loss_scale) text += loss_scale_text(*v.loss_scale, tensors, term) + "\n";
  const std::size_t used = std::min(screen, lines_of(text) + around);
  return text + findings_text(v, tensors, term, screen - used);
}

std::string tensor_table(const verdict& v, std::span<const tensor_evidence> tensors,
                         const terminal& term) {
  std::string text =
      term.painted(paint::heading, cat(table_line("lost in", "the role's", "lost in", "", ""),
                                       table_line("fp16", "choice", "it", "role", "tensor")));
  for (const std::size_t i : v.order) text += tensor_line(v, tensors[i]);
  return text;
}

std::string plain_table(const verdict& v, std::span<const tensor_evidence> tensors) {
  std::string text;
  for (const std::size_t i : v.order) {
    const tensor_evidence& tensor = tensors[i];
    const tensor_losses losses = losses_of(v, tensor);
    std::string choice = losses.judged ? "as stored" : "not judged";
    if (tensor.state == judged::not_read) choice = "not read";
    std::string figures = losses.judged ? "\t-\t0" : "\t-\t-";
    if (losses.chosen != nullptr) {
      const kept k = kept_by(*losses.chosen, tensor.nonzero);
      choice = spec_of(losses.chosen->what).name;
      figures =
          cat("\t", k.db ? shortest(*k.db) : "exact", "\t", fraction_text(k.underflow, k.nonzero));
    }
    text += cat(tensor.name, "\t", title(tensor.what), "\t", tensor.count, "\t",
                fraction_text(losses.fp16, tensor.nonzero), "\t", choice, figures, "\n");
  }
  return text;
}

}  // namespace fpinspect
