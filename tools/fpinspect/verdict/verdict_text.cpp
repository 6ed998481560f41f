// The verdict as text: roles, loss scale and the table of tensors.
#include "fpinspect/verdict/verdict_text.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "fpinspect/cli/text.hpp"

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
    const std::size_t space = line.rfind(' ', width);
    if (space == std::string::npos || space <= indent.size()) break;
    result += cat(line.substr(0, space), "\n");
    line = cat(indent, line.substr(space + 1));
  }
  return cat(result, line, "\n");
}

std::string need_text(const need& wanted) {
  std::string text = need_sentence(wanted);
  const std::string_view last = "non-zero ";
  text[text.find(last) + last.size() - 1] = '\n';
  return text + "\n\n";
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
  if (!s.reason.empty()) text += wrapped(cat(below_choice, s.reason), term, below_reason);
  if (!s.besides.empty()) text += cat(below_choice, s.besides, "\n");
  return text;
}

std::string loss_scale_text(const loss_scale_verdict& l, std::span<const tensor_evidence> tensors,
                            const terminal& term) {
  const loss_scale_summary s = summary_of(l, tensors);
  std::string text = cat("Loss scale for fp16 gradients: ", term.painted(paint::heading, s.head),
                         l.needed ? "   (bf16 gradients need none)\n" : "\n");
  for (const scale_summary& one : s.scales) {
    text += cat("  ", left(one.scale, 8), right(one.lost, 10), " lost", one.note, "\n");
  }
  return s.closing.empty() ? text : cat(text, "  ", s.closing, "\n");
}

std::string findings_text(const verdict& v, std::span<const tensor_evidence> tensors,
                          const terminal& term) {
  constexpr std::size_t most = 10;
  if (v.findings.empty()) return "Nothing else needs attention.\n";
  std::string text = term.painted(paint::heading, "Look at these") + "\n";
  for (std::size_t i = 0; i < std::min(most, v.findings.size()); ++i) {
    const finding& f = v.findings[i];
    text +=
        wrapped(cat("  ", tensors[f.tensor].name, ": ", finding_text(f, v, tensors)), term, "    ");
  }
  if (v.findings.size() > most) text += cat("  and ", v.findings.size() - most, " more\n");
  return text;
}

std::string table_line(std::string_view name, std::size_t width, std::string_view role,
                       std::string_view fp16, std::string_view db, std::string_view lost) {
  return cat("  ", left(name, width), "  ", left(role, 11), right(fp16, 10), right(db, 13),
             right(lost, 10), "\n");
}

std::string tensor_line(const verdict& v, const tensor_evidence& tensor, std::size_t width) {
  const tensor_summary s = summary_of(v, tensor);
  return table_line(tensor.name, width, title(tensor.what), s.fp16, s.db, s.lost);
}

}  // namespace

std::string verdict_text(const verdict& v, std::span<const tensor_evidence> tensors,
                         const std::string& heading, const terminal& term) {
  std::uint64_t values = 0;
  for (const tensor_evidence& tensor : tensors) values += tensor.count;
  std::string text =
      cat(heading, ": ", tensors.size(), tensors.size() == 1 ? " tensor" : " tensors", ", ", values,
          values == 1 ? " value\n\n" : " values\n\n", need_text(v.wanted));
  for (const role_verdict& r : v.roles) text += role_text(v, tensors, r, term);
  text += "\n";
  if (v.loss_scale) text += loss_scale_text(*v.loss_scale, tensors, term) + "\n";
  return text + findings_text(v, tensors, term);
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
