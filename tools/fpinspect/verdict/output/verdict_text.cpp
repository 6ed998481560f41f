// The verdict as text: roles, loss scale and the table of tensors.
#include "fpinspect/verdict/output/verdict_text.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "fpinspect/cli/text/text.hpp"

namespace fpinspect {
namespace {

constexpr std::string_view below_choice = "          ";
constexpr std::string_view below_reason = "            ";

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

std::string need_text(const need& wanted) {
  std::string text = need_sentence(wanted);
  const std::string_view last = "non-zero ";
  text[text.find(last) + last.size() - 1] = '\n';
  return text + "\n";
}

std::string role_text(const verdict& v, std::span<const tensor_evidence> tensors,
                      const role_verdict& r, const terminal& term) {
  const role_summary s = summary_of(v, tensors, r);
  std::string chosen = s.choice;
  if (!s.stored.empty()) chosen = cat(left(chosen, 25), s.stored);
  if (!s.bits.empty()) {
    chosen = cat(left(chosen, 25), right(s.db, 8), right(s.lost, 10), " lost",
                 right(s.bits + " bits", 11));
  }
  if (r.chosen) chosen = term.painted(paint::heading, chosen);
  std::string text =
      cat("  ", left(title(r.what), 12), right(cat(r.tensors.size()), 5), "  ", chosen, "\n");
  for (const std::string& note : {s.reason, s.rule, s.besides}) {
    if (!note.empty()) text += wrapped(cat(below_choice, note), term, below_reason);
  }
  return text;
}

/// Whether the text has a line for a scale: the best one, twice the best one, and half of it if that
/// loses more.
bool is_shown(const loss_scale_verdict& l, const scale_loss& loss) {
  const int below = l.best.log2 - loss.log2;
  return below <= 0 || (below == 1 && loss.underflow != l.best.underflow);
}

std::string loss_scale_text(const loss_scale_verdict& l, std::span<const tensor_evidence> tensors,
                            const terminal& term) {
  const loss_scale_summary s = summary_of(l, tensors);
  std::string text = cat("Loss scale for fp16 gradients: ", term.painted(paint::heading, s.head),
                         s.note.empty() ? "\n" : cat("   (", s.note, ")\n"));
  for (std::size_t i = 0; i < s.scales.size(); ++i) {
    if (i != 0 && !is_shown(l, l.neighbours[i - 1])) continue;  // the first one is no scale
    const scale_summary& one = s.scales[i];
    text += wrapped(cat("  ", left(one.scale, 8), right(one.lost, 10), " lost", one.note), term,
                    "    ");
  }
  return s.closing.empty() ? text : cat(text, "  ", s.closing, "\n");
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
  return cat(files, ": ", number_of(tensors.size(), "tensor"), ", ", number_of(values, "value"),
             "\n\n");
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
