// `fpinspect report`: writes the verdict on files as a page, or one of its pictures.

#include "fpinspect/cli/command.hpp"
#include "fpinspect/cli/files.hpp"
#include "fpinspect/report/pictures.hpp"
#include "fpinspect/verdict/collect.hpp"
#include "fpinspect/verdict/output/verdict_text.hpp"
#include "samebits/core/config.hpp"

namespace fpinspect {
namespace {

constexpr std::size_t most_maps = 24;
constexpr std::uint64_t largest_map = std::uint64_t{1} << 28;  // elements: quantized in memory

constexpr std::array pictured_formats = {format_id::fp16, format_id::bf16, format_id::e4m3,
                                         format_id::e5m2};

/// The files, their statistics and the verdict.
struct report {
  std::vector<shown_tensor> shown = {};
  std::vector<tensor_evidence> all = {};
  verdict result = {};
  std::vector<scaler_row> scale_trace = {};  ///< of the training run; may be empty
  std::string heading = {};                  ///< of the page
};

std::optional<tile_map> map_of(const report& in, std::size_t i, const executor& where) {
  if (in.shown[i].info.count > largest_map) return std::nullopt;
  const tensor_evidence& evidence = in.all[i];
  return tile_map_of(in.shown[i], evidence.of_weight, choice_of(in.result, evidence), where);
}

// --- The page: one HTML file without anything from outside ---------------------------------------

constexpr std::size_t most_sections = 200;
constexpr std::size_t most_findings = 20;

constexpr std::string_view page_style =
#include "fpinspect/report/page_style.inc"
    ;
constexpr std::string_view page_script =
#include "fpinspect/report/page_script.inc"
    ;

template <class... Parts>
std::string in_tag(std::string_view tag, const Parts&... text) {
  const std::string_view name = tag.substr(0, tag.find(' '));
  return cat("<", tag, ">", markup_text(cat(text...)), "</", name, ">");
}

std::string figure_of(const svg_picture& picture, std::string_view caption) {
  return cat("<figure>", picture.element(), in_tag("figcaption", caption), "</figure>\n");
}

/// A figure with its name, which narrow screens show in place of the column's heading.
std::string labelled(std::string_view label, std::string_view figure) {
  return cat(R"(<td class="number" data-label=")", label, "\">", markup_text(figure), "</td>");
}

std::string role_rows(const report& in) {
  std::string rows;
  for (const role_verdict& r : in.result.roles) {
    const role_summary s = summary_of(in.result, r);
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

/// A table that scrolls sideways on narrow screens.
std::string table(std::string_view label, std::string_view attributes,
                  std::span<const std::string_view> names, const std::string& rows) {
  const auto heading_cell = [](std::string_view name) { return in_tag("th scope=\"col\"", name); };
  return cat(R"(<div class="scroll" role="region" tabindex="0" aria-label=")", markup_text(label),
             "\"><table", attributes, "><caption>", markup_text(label), "</caption><thead><tr>",
             joined(names, heading_cell, ""), "</tr></thead><tbody>\n", rows,
             "</tbody></table></div>\n");
}

std::string verdict_part(const report& in) {
  constexpr std::array<std::string_view, 6> names = {"role", "tensors", "choice",
                                                     "SQNR", "lost",    "bits"};
  const auto refused = refusal_of(in.result);
  return cat("<section><h2>Verdict</h2>", in_tag("p", need_sentence(in.result.wanted)),
             table("A choice for each role", " class=\"roles\"", names, role_rows(in)),
             in_tag("p", size_change_text(size_of(in.result))),
             refused ? in_tag("p", refusal_text(*refused, in.result.wanted)) : "", "</section>\n");
}

std::string loss_scale_part(const report& in) {
  if (!in.result.loss_scale) return {};
  const loss_scale_verdict& l = *in.result.loss_scale;
  const loss_scale_summary s = summary_of(l, in.all);
  std::string text = cat("<section><h2>Loss scale</h2><p>Loss scale for fp16 gradients: <strong>",
                         markup_text(s.head), "</strong>",
                         s.note.empty() ? "" : markup_text(cat(" (", s.note, ")")), "</p><ul>");
  for (const scale_summary& one : s.scales) {
    text += in_tag("li", one.scale, ": ", one.lost, " lost", one.note);
  }
  text += "</ul>";
  if (!s.closing.empty()) text += in_tag("p", s.closing);
  text += figure_of(
      loss_scale_picture(in.all, l.best.log2, in.result.wanted.underflow_percent),
      "What fp16 loses at each loss scale, in the gradient tensor that loses the largest share of "
      "its non-zero values. Blue: become 0. Red: overflow. Dashed: the need, and the largest scale "
      "without overflow.");
  return text + "</section>\n";
}

std::string scale_trace_part(const report& in) {
  if (in.scale_trace.empty()) return {};
  const std::size_t skipped = skipped_steps(in.scale_trace);
  return cat("<section><h2>Training run</h2>",
             in_tag("p", number_of(in.scale_trace.size(), "step"), ", ", skipped, " skipped"),
             figure_of(scale_trace_picture(in.scale_trace),
                       "Loss scale in each step. Red: share of the steps that were skipped"),
             "</section>\n");
}

/// The tensor's name, as a link if it has a section.
std::string linked(const report& in, std::size_t tensor, const std::set<std::size_t>& sections) {
  const std::string name = markup_text(in.all[tensor].name);
  return sections.contains(tensor) ? cat("<a href=\"#t", tensor, "\">", name, "</a>") : name;
}

std::string findings_part(const report& in, const std::set<std::size_t>& sections) {
  std::string text = "<section><h2>Look at these</h2>";
  const std::vector<finding>& all = in.result.findings;
  if (all.empty()) return text + "<p>Nothing else needs attention.</p></section>\n";
  text += "<ul>";
  for (std::size_t i = 0; i < std::min(most_findings, all.size()); ++i) {
    text += cat("<li>", linked(in, all[i].tensor, sections), ": ",
                markup_text(finding_text(all[i], in.result)), "</li>");
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

std::string tensor_row(const report& in, std::size_t i, const std::set<std::size_t>& sections) {
  const tensor_evidence& t = in.all[i];
  const tensor_summary s = summary_of(in.result, t);
  const cast_statistics& stats = t.stats;
  const scale_loss fp16 = loss_at(stats.binades, 0);
  const auto share = [&](std::uint64_t count) {
    const auto nonzero = static_cast<double>(stats.nonzero());
    return nonzero == 0 ? 0.0 : static_cast<double>(count) / nonzero;
  };
  const choice_effect* effect = chosen_effect(in.result, t);
  constexpr double exact = 1e6;  // sorts behind every ratio
  double db = exact;
  if (effect != nullptr) db = effect->db().value_or(exact);
  return cat("<tr><th scope=\"row\">", linked(in, i, sections), "</th>",
             in_tag("td", title(t.what)),
             number_cell(static_cast<double>(t.info.count), cat(t.info.count)),
             number_cell(stats.amax.value_or(0), stats.amax ? general(*stats.amax, 4) : "-"),
             number_cell(static_cast<double>(stats.nan + stats.inf), cat(stats.nan + stats.inf)),
             number_cell(share(fp16.underflow + fp16.overflow), s.fp16), number_cell(db, s.db),
             number_cell(effect == nullptr ? 0 : share(effect->underflow), s.lost), "</tr>\n");
}

std::string tensors_part(const report& in, const std::set<std::size_t>& sections) {
  constexpr std::array<std::string_view, 8> names = {
      "tensor",    "role", "values", "amax", "NaN, Inf", "lost in fp16", "the role's choice",
      "lost in it"};
  std::string rows;
  for (const std::size_t i : in.result.order) rows += tensor_row(in, i, sections);
  return cat(
      "<section><h2 id=\"tensors\">Tensors</h2>",
      in_tag("p class=\"note\"",
             "Sorted by the larger of two shares: lost in fp16 without a loss scale, lost in "
             "the choice of the role."),
      table("Tensors, largest loss first", " class=\"sortable\"", names, rows), "</section>\n");
}

std::string stored_note(const report& in, std::size_t i) {
  const auto c = choice_of(in.result, in.all[i]);
  return c ? std::string(spec_of(*c).name) : std::string();
}

std::string_view red_note(const tile_map& map) {
  const bool any =
      std::ranges::any_of(map.cells, [](const map_cell& cell) { return !cell.finite; });
  return any ? "; red: NaN or Inf" : "";
}

std::string section_of(const report& in, std::size_t i, const std::optional<tile_map>& map) {
  const tensor_evidence& t = in.all[i];
  std::string text = cat(
      R"(<section class="tensor" id="t)", i, "\">", in_tag("h3", t.name),
      in_tag("p class=\"note\"", title(t.what), ", ", shape_text(t.info.shape), ", ",
             number_of(t.info.count, "value"), ", ", t.stats.nan, " NaN, ", t.stats.inf, " Inf"),
      "<div class=\"pictures\">\n");
  if (!t.stats.binades.empty()) {
    text += figure_of(exponent_picture(t.name, exponents_of({&t, 1}), pictured_formats),
                      "Values by power of two, and where formats without a scale are normal "
                      "(thick), subnormal (thin) or out of range (dotted)");
  }
  if (map) {
    text += figure_of(amax_picture(t.name, *map),
                      cat("amax of each part, a colour a binade", red_note(*map)));
    const std::string choice = stored_note(in, i);
    if (const auto errors = error_picture(t.name, *map, choice)) {
      text += figure_of(*errors, cat("SQNR of each part as ", choice, ", a colour for each 5 dB",
                                     red_note(*map)));
    }
  }
  return text + "</div><p><a href=\"#tensors\">to the table</a></p></section>\n";
}

/// The tensors with a section of their own, in the order of the verdict: at most 200, so that the
/// page stays small.
std::vector<std::size_t> detailed_tensors(const report& in) {
  std::vector<std::size_t> chosen = in.result.order;
  const std::vector<finding>& findings = in.result.findings;
  std::for_each(findings.rbegin(), findings.rend(),
                [&](const finding& f) {  // tensors with findings first
                  const auto at = std::ranges::find(chosen, f.tensor);
                  std::rotate(chosen.begin(), at, at + 1);
                });
  chosen.resize(std::min(chosen.size(), most_sections));
  return chosen;
}

std::string page_of(const report& in, const executor& where) {
  const std::vector<std::size_t> detailed = detailed_tensors(in);
  const std::set<std::size_t> sections(detailed.begin(), detailed.end());
  std::string page =
      cat(page_start(in.heading + " - fpinspect report", page_style), "<header><h1>",
          markup_text(in.heading), "</h1>", in_tag("p", size_text(in.shown)), "</header>\n<main>\n",
          verdict_part(in), loss_scale_part(in), scale_trace_part(in), findings_part(in, sections),
          tensors_part(in, sections));
  page += cat("<section><h2>Resolution</h2>",
              figure_of(resolution_picture(exponents_of(in.all)),
                        "Significant bits that a format keeps at each magnitude, without a scale. "
                        "Columns: the magnitudes of all values of the file"),
              "</section>\n<h2>Tensor by tensor</h2>\n");
  std::size_t maps = 0;
  for (const std::size_t i : detailed) {
    const auto map = maps < most_maps ? map_of(in, i, where) : std::nullopt;
    maps += map ? 1u : 0u;
    page += section_of(in, i, map);
  }
  if (detailed.size() < in.all.size()) {
    page += cat("<p>The other ", in.all.size() - detailed.size(),
                " tensors are in the table alone.</p>\n");
  }
  page +=
      cat("</main>\n<footer><p>Lost: finite non-zero values that become 0 (in fp16 also those that "
          "overflow). SQNR: 10 log10(sum of x&#178; / sum of (x - x')&#178;). amax: largest finite "
          "magnitude.</p><p>Made by fpinspect ",
          SAMEBITS_VERSION, ".</p></footer>\n<script>", page_script, "</script>\n</body></html>\n");
  return page;
}

// --- `fpinspect report` --------------------------------------------------------------------------

/// The name of the file without its folder, which is nobody's business: pages are passed on.
std::string page_heading(const std::vector<shown_tensor>& tensors) {
  if (tensors.empty()) return "no tensors";
  const std::string heading = heading_of(tensors);
  const bool one_file = heading == escape_path(tensors.front().path);
  return one_file ? escape_path(tensors.front().path.filename()) : heading;
}

[[noreturn]] void refuse_picture(const std::string& name, const char* reason) {
  throw usage_error("--svg ", name, ": ", reason);
}

/// A picture of one tensor.
svg_picture tensor_picture(const report& in, const std::string& name, const executor& where) {
  if (in.shown.size() != 1) refuse_picture(name, "name one tensor, with --tensor");
  const std::string& tensor = in.all.front().name;
  const auto counts = exponents_of({&in.all.front(), 1});
  if (name == "exponents") {
    if (counts.empty()) refuse_picture(name, "the tensor has no finite non-zero values");
    return exponent_picture(tensor, counts, pictured_formats);
  }
  const auto map = map_of(in, 0, where);
  if (!map) refuse_picture(name, "the tensor is not a matrix of numbers, or too large");
  if (name == "amax") return amax_picture(tensor, *map);
  const auto errors = error_picture(tensor, *map, stored_note(in, 0));
  if (!errors) refuse_picture(name, "the tensor stays as it is stored, or needs a loss scale");
  return *errors;
}

svg_picture picture_of(const report& in, const std::string& name, const need& wanted,
                       const executor& where) {
  if (name == "loss-scale-trace") return scale_trace_picture(in.scale_trace);
  if (name == "resolution") return resolution_picture(exponents_of(in.all));
  if (name == "loss-scale") {
    if (!in.result.loss_scale) refuse_picture(name, "there are no gradients; see --role");
    return loss_scale_picture(in.all, in.result.loss_scale->best.log2, wanted.underflow_percent);
  }
  return tensor_picture(in, name, where);
}

/// The name of a picture.
std::string picture_argument(std::string_view option, std::string_view text) {
  constexpr std::string_view names[] = {
      "loss-scale", "loss-scale-trace", "resolution", "exponents", "amax", "error"};
  if (contains(names, text)) return std::string(text);
  refuse_value(option, text, "is none of ", joined(names));
}

run_function report_command(option_list& add) {
  auto& files = add_files(add);
  auto& out = add.required("-o,--out", "FILE.html, or FILE.svg with --svg");
  auto& picture =
      add.value("--svg", picture_argument,
                "One picture: loss-scale, loss-scale-trace, resolution; of one tensor: exponents, "
                "amax, error");  // empty: the page
  auto& trace = add.text("--loss-scale-trace",
                         "The loss scale of the training run: CSV with step, scale and applied");
  auto& tensors = add_tensors(add);
  auto& wanted = add_need(add);
  auto& roles = add_roles(add);
  auto& from = add_from(add);
  add.refuse([&] { return add.given("--json"); },
             "--json: report writes a page; `fpinspect tensor --json` has the same figures");
  const auto is_trace = [&] { return add.is("--svg", "loss-scale-trace"); };
  add.need(
      {"--svg"}, [is_trace, &trace] { return !is_trace() || !trace.empty(); },
      "--loss-scale-trace");
  add.refuse(
      [&add, is_trace, &trace] { return add.given("--svg") && !is_trace() && !trace.empty(); },
      "--loss-scale-trace does nothing beside --svg of another picture; leave it out");
  return [&](const session& s) {
    const executor where = all_threads();
    report in;
    if (!trace.empty()) in.scale_trace = read_scale_trace(trace);
    const output_file target("--out", out, {picture.empty() ? ".html" : ".svg"});
    in.shown = tensors_to_show({files, tensors, from});
    for (const role_rule& rule : roles) require_match("--role", rule.pattern, in.shown);
    in.all = collect(in.shown, names_of(in.shown), roles, {}, wanted, where);
    in.result = verdict_on(in.all, wanted);
    if (!picture.empty()) {
      return target.write({picture_of(in, picture, wanted, where).document()}, s.out);
    }
    in.heading = page_heading(in.shown);
    target.write({page_of(in, where)}, s.out);
  };
}

const registered report_here("report", "Write the verdict on files as a page with pictures", 110,
                             report_command);

}  // namespace
}  // namespace fpinspect
