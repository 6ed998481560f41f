// The comparison of two files as text.
#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/compare/comparison.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

constexpr std::size_t most_names = 5;

std::string counted(std::uint64_t count, const char* one, const char* many) {
  return cat(count, " ", count == 1 ? one : many);
}

/// The coordinates of an element: "[17, 254]".
std::string position_text(std::uint64_t index, const std::vector<std::uint64_t>& shape) {
  std::vector<std::uint64_t> at(shape.size());
  for (std::size_t k = shape.size(); k-- > 0;) {
    at[k] = index % shape[k];
    index /= shape[k];
  }
  return cat("[", comma_separated(at), "]");
}

std::string ratio_text(const difference_figures& f) { return f.ratio().text("-"); }

std::string error_text(double error) { return error == 0 ? "0" : scientific(error, 2); }

using text_cells = std::vector<std::string>;

std::string line(std::size_t width, std::string_view name, const text_cells& padded) {
  return cat("  ", left(name, width), joined(padded, std::identity{}, ""), "\n");
}

/// Two lines of headings, and text_cells(pair) for each pair.
template <class Cells>
std::string pair_table(const std::vector<const compared_pair*>& pairs, const text_cells& above,
                       const text_cells& below, const Cells& cells_of, const terminal& term) {
  std::size_t width = 6;
  for (const compared_pair* pair : pairs) width = std::max(width, pair->name.size());
  width = std::min<std::size_t>(width, 40);
  std::string text =
      term.painted(paint::heading, line(width, "", above) + line(width, "tensor", below));
  for (const compared_pair* pair : pairs) text += line(width, pair->name, cells_of(*pair));
  return text;
}

std::string difference_table(const std::vector<const compared_pair*>& pairs, const terminal& term) {
  const auto padded = [](text_cells texts) {
    for (std::string& text : texts) text = " " + right(text, 9);
    return texts;
  };
  const auto cells_of = [&](const compared_pair& pair) {
    const difference_figures& f = pair.figures;
    return padded({percent(f.differ, f.count), error_text(f.max_error), error_text(f.mean_error()),
                   cat(f.max_ulp), ratio_text(f)});
  };
  return pair_table(pairs, padded({"values", "largest", "mean", "largest", "SQNR"}),
                    padded({"differ", "error", "error", "ulp", "of B"}), cells_of, term);
}

/// "3 new NaN, 1 new Inf", empty if NaN and infinities are the same.
std::string specials_text(const difference_figures& f) {
  std::string text;
  const auto add = [&](std::uint64_t count, const char* what) {
    if (count != 0) text += cat(text.empty() ? "" : ", ", count, " ", what);
  };
  add(f.new_nan, "new NaN");
  add(f.new_inf, "new Inf");
  add(f.lost_nan, "NaN became numbers");
  add(f.lost_inf, "Inf became other values");
  return text;
}

/// Where the first difference and the largest error of a tensor are.
std::string places(const compared_pair& pair) {
  const difference_figures& f = pair.figures;
  const auto place = [&](const char* what, const found_difference& at) {
    return cat("  ", pair.name, " ", position_text(at.index, pair.a->shape), ": ", shortest(at.a),
               " in A, ", shortest(at.b), " in B", what, "\n");
  };
  const bool one = f.largest && f.largest->index == f.first->index;
  std::string text = place(one ? ", first and largest" : ", first", *f.first);
  if (f.largest && !one) text += place(", largest", *f.largest);
  return text;
}

/// Elements of all tensors by their distance in ulp.
std::string ulp_histogram(const std::vector<const compared_pair*>& pairs) {
  std::array<std::uint64_t, 65> steps{};
  std::uint64_t all = 0;
  std::string formats;
  std::set<std::string> seen;
  for (const compared_pair* pair : pairs) {
    for (std::size_t k = 0; k < steps.size(); ++k) steps[k] += pair->figures.steps[k];
    all += pair->figures.paired;
    const std::string name(samebits::name(pair->figures.ulp_format));
    if (!seen.insert(name).second) continue;
    formats += cat(formats.empty() ? "" : ", ", name);
  }
  std::string text = cat("Distance in ulp of ", formats, ", in the tensors that differ\n");
  for (std::size_t k = 0; k < steps.size(); ++k) {
    if (steps[k] == 0) continue;
    std::string range = "0";
    if (k == 1) range = "1";
    if (k > 1) {
      const std::uint64_t first = std::uint64_t{1} << (k - 1);
      range = cat(first, " to ", first - 1 + first);
    }
    text += cat("  ", right(range, 20), right(cat(steps[k]), 14), right(percent(steps[k], all), 10),
                "\n");
  }
  return text;
}

std::string names_text(const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  const auto shown = std::span(names).first(std::min(most_names, names.size()));
  const std::string more =
      names.size() > most_names ? cat(" and ", names.size() - most_names, " more") : "";
  return cat(what, ": ", joined(shown), more, "\n");
}

/// Tensors that are in one file only or are not compared.
std::string left_out(const comparison& all) {
  std::string text =
      names_text("Only in A", all.only_in_a) + names_text("Only in B", all.only_in_b);
  for (const compared_pair& pair : all.pairs) {
    if (!pair.reason.empty()) text += cat("Not compared: ", pair.name, ": ", pair.reason, "\n");
  }
  return text;
}

std::string specials_part(const std::vector<const compared_pair*>& different) {
  std::string text;
  for (const compared_pair* pair : different) {
    const std::string specials = specials_text(pair->figures);
    if (!specials.empty()) text += cat("  ", pair->name, ": ", specials, "\n");
  }
  return text.empty() ? text : "NaN and Inf\n" + text + "\n";
}

std::string two_files_text(const comparison& all, const std::string& heading,
                           const terminal& term) {
  const std::vector<const compared_pair*> different = all.different();
  std::uint64_t compared = 0;
  std::uint64_t bits = 0;
  for (const compared_pair& pair : all.pairs) {
    if (!pair.reason.empty()) continue;
    ++compared;
    bits += pair.figures.differ == 0 ? pair.figures.bits_differ.value_or(0) : 0;
  }
  std::string text = cat(heading, counted(compared, "tensor, ", "tensors, "),
                         compared - different.size(), " equal, ", different.size(), " differ\n");
  if (bits != 0) text += cat("Equal numbers with other bits (-0, NaN): ", bits, "\n");
  text += "\n";
  if (!different.empty()) {
    text += difference_table(different, term) + "\n" + specials_part(different);
    text += ulp_histogram(different) + "\n";
    for (std::size_t i = 0; i < std::min(most_names, different.size()); ++i) {
      text += places(*different[i]);
    }
    text += "\n";
  }
  const std::string missing = left_out(all);
  if (!missing.empty()) text += missing + "\n";
  if (different.empty()) return text.substr(0, text.size() - 1);
  return text + "error: |a - b|   SQNR: A is the signal, A - B the noise\n";
}

// --- with an original --------------------------------------------------------------------------

/// "A", "B" or "-": whose SQNR against the original is higher.
std::string_view closer_of(const original_figures& f) {
  const sqnr a = f.a.ratio();
  const sqnr b = f.b.ratio();
  if (a.exact || b.exact) return a.exact == b.exact ? "-" : a.exact ? "A" : "B";
  if (!a.db || !b.db) return a.db ? "A" : b.db ? "B" : "-";
  return *a.db == *b.db ? "-" : *a.db > *b.db ? "A" : "B";
}

std::string original_table(const std::vector<const compared_pair*>& pairs, const terminal& term) {
  const auto padded = [](text_cells texts) {
    constexpr std::size_t widths[] = {9, 9, 10, 10, 9, 9};
    for (std::size_t i = 0; i < std::size(widths); ++i) texts[i] = right(texts[i], widths[i]);
    texts.back() = "  " + texts.back();
    return texts;
  };
  const auto cells_of = [&](const compared_pair& pair) {
    const original_figures& f = *pair.against;
    return padded({ratio_text(f.a), ratio_text(f.b), error_text(f.a.max_error),
                   error_text(f.b.max_error), percent(f.closer.a, f.a.count),
                   percent(f.closer.b, f.a.count), std::string(closer_of(f))});
  };
  return pair_table(pairs, padded({"SQNR", "SQNR", "largest", "largest", "A is", "B is", "closer"}),
                    padded({"of A", "of B", "of A", "of B", "closer", "closer", "by SQNR"}),
                    cells_of, term);
}

std::string original_text(const comparison& all, const std::string& heading, const terminal& term) {
  const std::vector<const compared_pair*> pairs = all.different();
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  for (const compared_pair* pair : pairs) {
    a += closer_of(*pair->against) == "A" ? 1u : 0u;
    b += closer_of(*pair->against) == "B" ? 1u : 0u;
  }
  const std::uint64_t more = std::max(a, b);
  const std::string verdict = a == b
                                  ? cat("Neither is closer to the original: A in ", a, ", B in ", b,
                                        " of ", counted(pairs.size(), "tensor", "tensors"))
                                  : cat(a > b ? "A" : "B", " is closer to the original in ", more,
                                        " of ", counted(pairs.size(), "tensor", "tensors"));
  std::string text = cat(heading, term.painted(paint::heading, verdict), "\n\n");
  if (!pairs.empty()) text += original_table(pairs, term) + "\n";
  for (const compared_pair* pair : pairs) {
    const auto note = [&](const char* file, const difference_figures& f) {
      const std::string specials = specials_text(f);
      if (!specials.empty()) text += cat("  ", pair->name, ": ", specials, " in ", file, "\n");
    };
    note("A", pair->against->a);
    note("B", pair->against->b);
  }
  const std::string missing = left_out(all);
  if (!missing.empty()) text += missing + "\n";
  return text + "A is closer, B is closer: shares of the values; the others are equally far\n";
}

}  // namespace

std::string comparison_text(const comparison& all, const std::string& a, const std::string& b,
                            const std::string& original, const terminal& term) {
  using samebits::tensor_file::escape_path;
  const std::string heading = cat("A ", escape_path(a), "\nB ", escape_path(b), "\n");
  if (original.empty()) return two_files_text(all, heading, term);
  return original_text(all, cat("original ", escape_path(original), "\n", heading), term);
}

}  // namespace fpinspect
