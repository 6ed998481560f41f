// The page of `report`: implementation.
#include "fpinspect/report/page.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>

#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/report/pictures.hpp"
#include "fpinspect/verdict/output/verdict_sentences.hpp"
#include "samebits/core/config.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;

constexpr std::size_t most_sections = 200;
constexpr std::size_t most_findings = 20;

constexpr std::string_view page_style =
#include "fpinspect/report/page_style.inc"
    ;
constexpr std::string_view page_script =
#include "fpinspect/report/page_script.inc"
    ;

std::string in_tag(std::string_view tag, std::string_view text) {
  const std::string_view name = tag.substr(0, tag.find(' '));
  return cat("<", tag, ">", markup_text(text), "</", name, ">");
}

std::string figure_of(const svg_picture& picture, std::string_view caption) {
  return cat("<figure>", picture.element(), in_tag("figcaption", caption), "</figure>\n");
}

/// A figure with its name, which narrow screens show in place of the column's heading.
std::string labelled(std::string_view label, std::string_view figure) {
  return cat(R"(<td class="number" data-label=")", label, "\">", markup_text(figure), "</td>");
}

std::string role_rows(const report_input& in) {
  std::string rows;
  for (const role_verdict& r : in.result->roles) {
    const role_summary s = summary_of(*in.result, in.tensors, r);
    rows += cat("<tr>", in_tag("th scope=\"row\"", title(r.what)),
                labelled("tensors", cat(r.tensors.size())), "<td><strong>", markup_text(s.choice),
                "</strong>");
    for (const std::string& note : {s.stored, s.reason, s.rule, s.besides}) {
      if (!note.empty()) rows += in_tag("p class=\"note\"", note);
    }
    rows += cat("</td>", labelled("SQNR", s.db), labelled("lost", s.lost), labelled("bits", s.bits),
                "</tr>\n");
  }
  return rows;
}

std::string heading_cells(std::span<const std::string_view> names) {
  std::string row = "<tr>";
  for (const std::string_view name : names) row += in_tag("th scope=\"col\"", name);
  return row + "</tr>";
}

/// A table that scrolls sideways on narrow screens.
std::string table(std::string_view label, std::string_view attributes,
                  std::span<const std::string_view> names, const std::string& rows) {
  return cat(R"(<div class="scroll" role="region" tabindex="0" aria-label=")", markup_text(label),
             "\"><table", attributes, "><caption>", markup_text(label), "</caption><thead>",
             heading_cells(names), "</thead><tbody>\n", rows, "</tbody></table></div>\n");
}

std::string verdict_part(const report_input& in) {
  constexpr std::array<std::string_view, 6> names = {"role", "tensors", "choice",
                                                     "SQNR", "lost",    "bits"};
  return cat("<section><h2>Verdict</h2>", in_tag("p", need_sentence(in.result->wanted)),
             table("A choice for each role", " class=\"roles\"", names, role_rows(in)),
             "</section>\n");
}

std::string loss_scale_part(const report_input& in) {
  if (!in.result->loss_scale) return {};
  const loss_scale_verdict& l = *in.result->loss_scale;
  const loss_scale_summary s = summary_of(l, in.tensors);
  std::string text = cat("<section><h2>Loss scale</h2><p>Loss scale for fp16 gradients: <strong>",
                         markup_text(s.head), "</strong>",
                         s.note.empty() ? "" : markup_text(cat(" (", s.note, ")")), "</p><ul>");
  for (const scale_summary& one : s.scales) {
    text += in_tag("li", cat(one.scale, ": ", one.lost, " lost", one.note));
  }
  text += "</ul>";
  if (!s.closing.empty()) text += in_tag("p", s.closing);
  text += figure_of(
      loss_scale_picture(in.tensors, l.best.log2, in.result->wanted.underflow_percent),
      "What fp16 loses at each loss scale, in the gradient tensor that loses the largest share of "
      "its non-zero values. Blue: become 0. Red: overflow. Dashed: the need, and the largest scale "
      "without overflow.");
  return text + "</section>\n";
}

std::string scale_trace_part(const report_input& in) {
  if (in.scale_trace.empty()) return {};
  const auto skipped =
      static_cast<std::uint64_t>(std::count_if(in.scale_trace.begin(), in.scale_trace.end(),
                                               [](const scaler_row& row) { return !row.applied; }));
  return cat("<section><h2>Training run</h2>",
             in_tag("p", cat(number_of(in.scale_trace.size(), "step"), ", ", skipped, " skipped")),
             figure_of(scale_trace_picture(in.scale_trace),
                       "Loss scale in each step. Red: share of the steps that were skipped"),
             "</section>\n");
}

/// The tensor's name, as a link if it has a section.
std::string linked(const report_input& in, std::size_t tensor, std::span<const bool> has_section) {
  const std::string name = markup_text(in.tensors[tensor].name);
  return has_section[tensor] ? cat("<a href=\"#t", tensor, "\">", name, "</a>") : name;
}

std::string findings_part(const report_input& in, std::span<const bool> has_section) {
  std::string text = "<section><h2>Look at these</h2>";
  const std::vector<finding>& all = in.result->findings;
  if (all.empty()) return text + "<p>Nothing else needs attention.</p></section>\n";
  text += "<ul>";
  for (std::size_t i = 0; i < std::min(most_findings, all.size()); ++i) {
    text += cat("<li>", linked(in, all[i].tensor, has_section), ": ",
                markup_text(finding_text(all[i], *in.result, in.tensors)), "</li>");
  }
  text += "</ul>";
  if (all.size() > most_findings) text += cat("<p>and ", all.size() - most_findings, " more</p>");
  return text + "</section>\n";
}

/// A cell that is sorted by a number.
std::string number_cell(double sorted_by, std::string_view shown) {
  return cat(R"(<td class="number" data-v=")", general(sorted_by, 6), "\">", markup_text(shown),
             "</td>");
}

std::string tensor_row(const report_input& in, std::size_t i, std::span<const bool> has_section) {
  const tensor_evidence& t = in.tensors[i];
  const tensor_summary s = summary_of(*in.result, t);
  const scale_loss fp16 = loss_at(t.magnitudes, 0);
  const auto share = [&](std::uint64_t count) {
    return t.nonzero == 0 ? 0.0 : static_cast<double>(count) / static_cast<double>(t.nonzero);
  };
  const choice_effect* effect = chosen_effect(*in.result, t);
  constexpr double exact = 1e6;  // sorts behind every ratio
  double db = exact;
  if (effect != nullptr) db = kept_by(*effect, t.nonzero).db.value_or(exact);
  return cat("<tr><th scope=\"row\">", linked(in, i, has_section), "</th>",
             in_tag("td", title(t.what)), number_cell(static_cast<double>(t.count), cat(t.count)),
             number_cell(t.amax.value_or(0), t.amax ? general(*t.amax, 4) : "-"),
             number_cell(static_cast<double>(t.nan + t.inf), cat(t.nan + t.inf)),
             number_cell(share(fp16.underflow + fp16.overflow), s.fp16), number_cell(db, s.db),
             number_cell(effect == nullptr ? 0 : share(effect->underflow), s.lost), "</tr>\n");
}

std::string tensors_part(const report_input& in, std::span<const bool> has_section) {
  constexpr std::array<std::string_view, 8> names = {
      "tensor",    "role", "values", "amax", "NaN, Inf", "lost in fp16", "the role's choice",
      "lost in it"};
  std::string rows;
  for (const std::size_t i : in.result->order) rows += tensor_row(in, i, has_section);
  return cat(
      "<section><h2 id=\"tensors\">Tensors</h2>",
      in_tag("p class=\"note\"",
             "Sorted by the larger of two shares: lost in fp16 without a loss scale, lost in "
             "the choice of the role."),
      table("Tensors, largest loss first", " class=\"sortable\"", names, rows), "</section>\n");
}

std::string stored_note(const report_input& in, std::size_t i) {
  const auto c = choice_of(*in.result, in.tensors[i]);
  return c ? std::string(spec_of(*c).name) : std::string();
}

std::string_view red_note(const tile_map& map) {
  const bool any = std::any_of(map.cells.begin(), map.cells.end(),
                               [](const map_cell& cell) { return !cell.finite; });
  return any ? "; red: NaN or Inf" : "";
}

std::string section_of(const report_input& in, std::size_t i) {
  constexpr std::array formats = {format_id::fp16, format_id::bf16, format_id::e4m3,
                                  format_id::e5m2};
  const tensor_evidence& t = in.tensors[i];
  std::string text =
      cat(R"(<section class="tensor" id="t)", i, "\">", in_tag("h3", t.name),
          in_tag("p class=\"note\"",
                 cat(title(t.what), ", [", comma_separated(t.shape), "], ",
                     number_of(t.count, "value"), ", ", t.nan, " NaN, ", t.inf, " Inf")),
          "<div class=\"pictures\">\n");
  if (!in.stats[i].binades.empty()) {
    text += figure_of(exponent_picture(t.name, exponents_of(in.stats[i]), formats),
                      "Values by power of two, and where formats without a scale are normal "
                      "(thick), subnormal (thin) or out of range (dotted)");
  }
  const auto map = in.maps.find(i);
  if (map != in.maps.end()) {
    text += figure_of(amax_picture(t.name, map->second),
                      cat("amax of each part, a colour a binade", red_note(map->second)));
    const std::string choice = stored_note(in, i);
    if (const auto errors = error_picture(t.name, map->second, choice)) {
      text += figure_of(*errors, cat("SQNR of each part as ", choice, ", a colour for each 5 dB",
                                     red_note(map->second)));
    }
  }
  return text + "</div><p><a href=\"#tensors\">to the table</a></p></section>\n";
}

std::string head_of(const std::string& title_text) {
  return cat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
      markup_text(title_text), "</title>\n<style>", picture_style(), page_style,
      "</style></head>\n<body>\n");
}

}  // namespace

std::vector<std::size_t> detailed_tensors(const report_input& in) {
  std::vector<std::size_t> chosen = in.result->order;
  const std::vector<finding>& findings = in.result->findings;
  std::for_each(findings.rbegin(), findings.rend(),
                [&](const finding& f) {  // tensors with findings first
                  const auto at = std::find(chosen.begin(), chosen.end(), f.tensor);
                  std::rotate(chosen.begin(), at, at + 1);
                });
  chosen.resize(std::min(chosen.size(), most_sections));
  return chosen;
}

std::map<int, std::uint64_t> all_exponents(std::span<const samebits::cast_statistics> stats) {
  std::map<int, std::uint64_t> sum;
  for (const samebits::cast_statistics& one : stats) {
    for (const auto& [exponent, counts] : one.binades) sum[exponent] += counts.all;
  }
  return sum;
}

std::string report_page(const report_input& in) {
  const std::vector<std::size_t> detailed = detailed_tensors(in);
  const auto has_section = std::make_unique<bool[]>(in.tensors.size());
  for (const std::size_t i : detailed) has_section[i] = true;
  const std::span<const bool> sections(has_section.get(), in.tensors.size());
  std::uint64_t values = 0;
  for (const tensor_evidence& t : in.tensors) values += t.count;
  std::string page = cat(
      head_of(in.heading + " - fpinspect report"), "<header><h1>", markup_text(in.heading), "</h1>",
      in_tag("p", cat(number_of(in.tensors.size(), "tensor"), ", ", number_of(values, "value"))),
      "</header>\n<main>\n", verdict_part(in), loss_scale_part(in), scale_trace_part(in),
      findings_part(in, sections), tensors_part(in, sections));
  page += cat("<section><h2>Resolution</h2>",
              figure_of(resolution_picture(all_exponents(in.stats)),
                        "Significant bits that a format keeps at each magnitude, without a scale. "
                        "Columns: the magnitudes of all values of the file"),
              "</section>\n<h2>Tensor by tensor</h2>\n");
  for (const std::size_t i : detailed) page += section_of(in, i);
  if (detailed.size() < in.tensors.size()) {
    page += cat("<p>The other ", in.tensors.size() - detailed.size(),
                " tensors are in the table alone.</p>\n");
  }
  page +=
      cat("</main>\n<footer><p>Lost: finite non-zero values that become 0 (in fp16 also those that "
          "overflow). SQNR: 10 log10(sum of x&#178; / sum of (x - x')&#178;). amax: largest finite "
          "magnitude.</p><p>Made by fpinspect ",
          SAMEBITS_VERSION, ".</p></footer>\n<script>", page_script, "</script>\n</body></html>\n");
  return page;
}

}  // namespace fpinspect
