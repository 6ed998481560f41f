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

/// The text with a newline at the end. Lines that would be too wide are broken at spaces; the
/// following lines are indented.
std::string wrapped(std::string_view text, const terminal& term, std::string_view indent) {
  const auto width = static_cast<std::size_t>(std::clamp(term.width(), 60, 100));
  std::string result;
  std::string line(text);
  while (line.size() > width) {
    const std::size_t space = line.rfind(' ', width);
    if (space == std::string::npos || space <= indent.size()) break;
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
  const std::string_view more = "            ";
  for (std::size_t k = *r.chosen + (r.met ? 0 : 1); k-- > 0;) {
    const choice_outcome& cheaper = r.outcomes[k];
    const std::string head = cat(below_choice, "not ", spec_of(cheaper.what).name, ": ");
    if (!cheaper.failed.empty()) {
      return wrapped(cat(head, failure_text(v, tensors, cheaper)), term, more);
    }
    if (r.what == role::adam_v && cheaper.tried != 0) {
      return cat(head, "rounding to nearest drops updates below 2^-9 of v\n");
    }
  }
  return {};
}

/// Tensors of the role that the choice does not concern.
std::string exceptions_text(const role_verdict& r, std::span<const tensor_evidence> tensors,
                            choice chosen) {
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
  return text.empty() ? text : cat(below_choice, "besides: ", text, "\n");
}

std::string role_text(const verdict& v, std::span<const tensor_evidence> tensors,
                      const role_verdict& r, const terminal& term) {
  const std::string head =
      cat("  ", left(title(r.what), 12), right(cat(r.tensors.size()), 5), "  ");
  if (!r.chosen) return cat(head, "not judged\n", exceptions_text(r, tensors, choice::fp32));
  const choice_outcome& outcome = r.outcomes[*r.chosen];
  const std::string_view name = spec_of(outcome.what).name;
  std::string chosen = cat(left(name, 25), outcome_figures(tensors, outcome));
  if (outcome.tried == 0 && outcome.what != choice::fp32) {
    chosen = cat("as stored, no wider than ", name);
  }
  if (!r.met) chosen = "as stored: no choice meets the need";
  return cat(head, term.painted(paint::heading, chosen), "\n", reason(v, tensors, r, term),
             exceptions_text(r, tensors, outcome.what));
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
    return cat("  ", left(name, 8), right(percent(loss.underflow, l.nonzero), 10), " lost",
               overflow_note(loss, l, tensors), best ? ", the largest without overflow" : "", "\n");
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

std::string table_line(std::string_view name, std::size_t width, std::string_view role,
                       std::string_view fp16, std::string_view db, std::string_view lost) {
  return cat("  ", left(name, width), "  ", left(role, 11), right(fp16, 10), right(db, 13),
             right(lost, 10), "\n");
}

std::string tensor_line(const verdict& v, const tensor_evidence& tensor, std::size_t width) {
  if (tensor.state == judged::not_read) {
    return cat("  ", left(tensor.name, width), "  ", left(title(tensor.what), 11),
               "   not read: ", tensor.unread, "\n");
  }
  const scale_loss fp16 = loss_at(tensor.magnitudes, 0);
  const std::string share = percent(fp16.underflow + fp16.overflow, tensor.nonzero);
  const auto line = [&](std::string_view db, std::string_view lost) {
    return table_line(tensor.name, width, title(tensor.what), share, db, lost);
  };
  if (tensor.state != judged::yes) return line("not judged", "-");
  const choice_effect* effect = chosen_effect(v, tensor);
  if (effect == nullptr) return line("as stored", "0 %");
  const kept k = kept_by(*effect, tensor.nonzero);
  return line(db_text(k.db), percent(k.underflow, k.nonzero));
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
  constexpr std::size_t widest = 60;
  std::size_t width = 6;
  for (const tensor_evidence& tensor : tensors) width = std::max(width, tensor.name.size());
  width = std::min(width, widest);
  const auto heading = [&](std::string_view name, std::string_view role, std::string_view fp16,
                           std::string_view db, std::string_view lost) {
    return term.painted(paint::heading, table_line(name, width, role, fp16, db, lost));
  };
  std::string text = heading("", "", "lost in", "the role's", "lost in") +
                     heading("tensor", "role", "fp16", "choice", "it");
  for (const std::size_t i : v.order) text += tensor_line(v, tensors[i], width);
  return text;
}

}  // namespace fpinspect
