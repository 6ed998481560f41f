// `fpinspect tensor`: which format or recipe for the tensors of files, which loss scale, and what
// is lost.
#include <charconv>
#include <system_error>

#include "fpinspect/tensors/tensor_views.hpp"
#include "fpinspect/verdict/collect.hpp"
#include "fpinspect/verdict/output/verdict_text.hpp"

namespace fpinspect {
namespace {

/// Statistics for a target format are meaningful if it has a sign and a zero, and is narrower than
/// fp64.
bool has_statistics(format_id format) {
  return format != format_id::fp64 && format != format_id::e8m0;
}

/// The exponent N of a loss scale: of 2^N, or of the number itself, such as 65536.
int scale_argument(std::string_view option, std::string_view text) {
  constexpr int largest = 127;  // loss scales are binary32
  const char* const end = text.data() + text.size();
  int log2 = 0;
  double number = 0;
  bool is_power = false;
  if (text.starts_with("2^")) {
    const auto [read, error] = std::from_chars(text.data() + 2, end, log2);
    is_power = error == std::errc{} && read == end;
  } else {
    const auto [read, error] = std::from_chars(text.data(), end, number);
    is_power = error == std::errc{} && read == end && std::frexp(number, &log2) == 0.5;
    --log2;
  }
  if (is_power && log2 >= -largest && log2 <= largest) return log2;
  refuse_value(option, text, "is no power of two from 2^-127 to 2^127, such as 2^16 or 65536");
}

/// A tensor and what a format does to it.
struct format_effect {
  const cast_statistics& stats;
  const cast_effect& cast;
};
constexpr figure<format_effect> format_figures[] = {
    {{"underflow", "%", true},
     [](auto& e) { return figure_value(e.cast.underflow, e.stats.nonzero()); }},
    {{"overflow", "%", true},
     [](auto& e) { return figure_value(e.cast.overflow, e.stats.nonzero()); }},
    {{"sqnr", "dB", true},
     [](auto& e) {
       return sqnr{.db = sqnr_db(e.cast.saturated_signal, e.cast.saturated_noise),
                   .exact = e.cast.changed == 0}
           .level();
     }},
};

bool is_about_a_format(const condition& c) {
  return contains(format_figures, c.figure, &figure_spec::name);
}

void require_role(const condition& c) {
  refuse_if(!c.subject.empty() && !contains(role_names, c.subject), "--fail-if: \"", c.text,
            "\": ", c.subject, " is none of ", joined(role_names));
}

/// "gradients." and "fp16" of the subject gradients.fp16, each of which may be empty.
std::pair<std::string, std::string> role_and_format(const std::string& subject) {
  const std::string first = subject.substr(0, subject.find('.'));
  if (!contains(role_names, first)) return {"", subject};
  return {first + ".", subject.substr(std::min(subject.size(), first.size() + 1))};
}

/// The condition on this format, in tensors of this role.
condition about(condition c, const std::string& of_role, format_id format) {
  refuse_if(!has_statistics(format), "--fail-if: ", format, " is not a target format of `tensor`");
  c.subject = cat(of_role, format);
  return c;
}

/// The conditions of --fail-if on tensors, on formats, and on the verdict.
///
/// @param to  the formats of --to; empty if it is not given. A condition on a format that names none
///   is one on each of these.
/// @throws usage_error  if a text is not a condition, or needs a format and has none
std::vector<condition> tensor_conditions(const std::vector<std::string>& texts,
                                         std::span<const format_id> to) {
  std::vector<figure_spec> figures(std::begin(format_figures), std::end(format_figures));
  figures.insert(figures.end(), nonfinite_figures.begin(), nonfinite_figures.end());
  figures.insert(figures.end(), {{"bits", "", true}, {"loss-scale", ""}});
  std::vector<condition> result;
  for (condition& c : conditions_argument(texts, figures)) {
    if (c.figure == "bits") require_role(c);
    if (!is_about_a_format(c)) {
      result.push_back(std::move(c));
      continue;
    }
    const auto [of_role, named] = role_and_format(c.subject);
    const std::string figure = c.text.substr(of_role.size());
    if (!named.empty()) {
      result.push_back(about(c, of_role, format_argument("--fail-if", named)));
    } else if (to.empty()) {
      throw usage_error("--fail-if: \"", c.text, "\" needs a format: ", of_role, "fp16.", figure,
                        ", or --to");
    } else {
      for (const format_id format : to) {
        result.push_back(about(c, of_role, format));
        result.back().text = cat(of_role, format, ".", figure);
      }
    }
  }
  return result;
}

/// The conditions, with the tensors for which they hold.
gate checked_gate(const std::vector<condition>& conditions, const verdict& v) {
  gate result(conditions);
  for (const tensor_evidence& tensor : v.tensors) {
    const cast_statistics& stats = tensor.stats;
    result.add_nonfinite(tensor.name, stats.nan, stats.inf, stats.count);
    for (const cast_effect& cast : stats.casts) {
      const std::string_view format = name(cast.format);
      const std::string shown = cat(tensor.name, " in ", format);
      const std::string of_role = cat(name(tensor.what), ".", format);
      result.add<format_effect>(format_figures, format, shown, {stats, cast});
      result.add<format_effect>(format_figures, of_role, shown, {stats, cast});
    }
  }
  for (const role_verdict& r : v.roles) {
    if (!r.chosen) continue;
    const double bits =
        r.met ? r.outcomes[*r.chosen].bits : std::numeric_limits<double>::infinity();
    result.add("bits", name(r.what), std::string(title(r.what)), bits);
  }
  if (v.loss_scale) {
    result.add("loss-scale", "", "gradients", std::ldexp(1.0, v.loss_scale->best.log2));
  }
  return result;
}

class tensor_command final : public command {
  bool& ascii_ = add.ascii();
  text_list& files_ = add_files(add);
  text_list& tensors_ = add_tensors(add);
  need& need_ = add_need(add);
  std::vector<role_rule>& roles_ = add_roles(add);
  bool& list_ =
      add.flag("--list", "A line for each tensor instead of the verdict, what loses most first");
  bool& plain_ =
      add.flag("--plain", "--list for programs: columns separated by tabs, all digits, no heading");
  text_list& details_ =
      add.repeated("--details", "Chart and formats of the tensors of this pattern");
  std::vector<format_id>& to_ =
      add.list("--to", targets_argument,
               "Formats, separated by commas (default: fp16,bf16,e4m3,e5m2; all with --json)");
  bool& all_formats_ = add.flag("--all-formats", "All formats");
  std::optional<int>& scale_ =
      add.optional_value("--scale", scale_argument,
                         "Loss scale 2^N of the elements before formats, in the detailed view");
  bool& stats_ =
      add.flag("--stats", "Mean, percentiles, channels and scales instead of the verdict");
  bool& quick_ =
      add.flag("--quick", "Only counts, extremes and means, as fast as the file can be read");
  text_list& fail_if_ =
      add.list("--fail-if", "Exit code 1 if: 'fp16.underflow>1%', 'nan>0', 'weights.bits>8', ...");
  bool& recipes_ = add.flag("--recipes", "What recipes would do instead of formats");
  std::string& from_ = add_from(add);

 public:
  explicit tensor_command(option_list& list) : command(list) {
    add.exclude("--recipes",
                {"--to", "--all-formats", "--ascii", "--need", "--role", "--details", "--scale"});
    add.exclude("--scale", {"--stats", "--quick", "--list", "--fail-if"});
    add.exclude("--stats", {"--recipes", "--list", "--to", "--all-formats", "--ascii", "--need",
                            "--role", "--details", "--fail-if"});
    add.exclude("--quick", {"--stats", "--recipes", "--list", "--to", "--all-formats", "--ascii",
                            "--need", "--role", "--details"});
    add.need({"--plain"}, "--list");
    add.exclude("--list", {"--json", "--recipes", "--details", "--to", "--all-formats", "--ascii"});
    add.exclude("--to", {"--all-formats"});
    add.exclude("--json", {"--ascii", "--details"});
  }

  void run(const session& s) {
    where_ = all_threads();
    if (quick_ || recipes_) return run_measured(s);
    const std::vector<condition> conditions = tensor_conditions(fail_if_, to_);
    const std::vector<shown_tensor> tensors = tensors_to_show({files_, tensors_, from_});
    if (stats_) return write_tensor_statistics(tensors, where_, s);
    for (const std::string& pattern : details_) require_match("--details", pattern, tensors);
    for (const role_rule& rule : roles_) require_match("--role", rule.pattern, tensors);
    if (tensors.empty() && !s.json) {
      if (!plain_) s.out.write("no tensors\n");
      return require_tensors(tensors);
    }
    run_verdict(tensors, conditions, s);
  }

 private:
  static std::vector<format_id> targets_argument(const std::vector<std::string>& texts) {
    const std::vector<format_id> formats = format_list_argument("--to", texts);
    for (const format_id format : formats) {
      if (has_statistics(format)) continue;
      throw usage_error("--to: ", format, " is not a target format of `tensor`");
    }
    return formats;
  }

  [[nodiscard]] std::vector<format_id> target_formats(bool json) const {
    if (!to_.empty()) return to_;
    if (!json && !all_formats_) {
      return {format_id::fp16, format_id::bf16, format_id::e4m3, format_id::e5m2};
    }
    std::vector<format_id> formats = all_formats();
    std::erase_if(formats, [](format_id format) { return !has_statistics(format); });
    return formats;
  }

  /// Without tensors no condition can hold, so a check fails.
  void require_tensors(const std::vector<shown_tensor>& tensors) const {
    if (fail_if_.empty() || !tensors.empty()) return;
    throw check_failed("--fail-if: there are no tensors");
  }

  /// --quick and --recipes.
  void run_measured(const session& s) const {
    gate conditions = quick_ ? gate(conditions_argument(fail_if_, nonfinite_figures))
                             : quantization_gate(fail_if_, true);
    const std::vector<shown_tensor> tensors = tensors_to_show({files_, tensors_, from_});
    const std::vector<std::string> names = names_of(tensors);
    if (recipes_) {
      write_tensor_recipes(tensors, names, conditions, where_, s);
    } else if (tensors.empty() && !s.json) {
      s.out.write("no tensors\n");
    } else {
      write_quick_statistics(tensors, names, conditions, where_, s);
    }
    require_tensors(tensors);
    conditions.check();
  }

  /// Whether the detailed view of a tensor is shown: it is the only one, --details matches it, or
  /// --to, --all-formats or --scale asks for figures without --details.
  [[nodiscard]] bool shows_details(const shown_tensor& tensor, std::size_t tensors) const {
    if (details_.empty()) return tensors == 1 || !to_.empty() || all_formats_ || scale_;
    return std::ranges::any_of(details_, [&](const std::string& pattern) {
      return matches_glob(pattern, tensor.plain_name());
    });
  }

  void run_verdict(const std::vector<shown_tensor>& tensors,
                   const std::vector<condition>& conditions, const session& s) const {
    const std::vector<format_id> formats = target_formats(s.json);
    const std::vector<std::string> names = names_of(tensors);
    const bool details = !list_ && (s.json || std::ranges::any_of(tensors, [&](const auto& one) {
                                      return shows_details(one, tensors.size());
                                    }));
    std::vector<format_id> measured;
    for (const condition& c : conditions) {
      if (!is_about_a_format(c)) continue;
      measured.push_back(format_argument("--fail-if", role_and_format(c.subject).second));
    }
    if (details) measured.insert(measured.end(), formats.begin(), formats.end());
    std::vector<tensor_evidence> all = collect(tensors, names, roles_, measured, need_, where_);
    if (scale_ && details) scale_effects(tensors, formats, all);
    const verdict v = verdict_on(all, need_);
    gate checked = checked_gate(conditions, v);
    for (std::size_t i = 0; i < tensors.size(); ++i) {  // conditions hold for measured tensors only
      if (!tensors[i].has_numbers()) checked.add_failure(names[i], tensors[i].note);
    }
    if (s.json) {
      json_array views;
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        views.add(details_json(tensors[i], all[i].stats, formats));
      }
      s.write_json({{"scale_log2", scale_},
                    {"verdict", verdict_json(v)},
                    {"tensors", views},
                    {"fail_if", checked.json()}});
    } else {
      write_text(tensors, formats, v, s);
    }
    checked.check();
  }

  /// Replaces the effects of formats by those on the elements times the loss scale.
  void scale_effects(const std::vector<shown_tensor>& tensors, std::span<const format_id> formats,
                     std::span<tensor_evidence> all) const {
    const statistics_request request = {.casts = {formats.begin(), formats.end()},
                                        .scale_log2 = *scale_};
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].has_numbers())
        all[i].stats.casts = statistics_of(tensors[i], request, where_).casts;
    }
  }

  void write_text(const std::vector<shown_tensor>& tensors, std::span<const format_id> formats,
                  const verdict& v, const session& s) const {
    if (plain_) return s.out.write(plain_table(v));
    s.out.write(heading_of(tensors), ": ", size_text(tensors), "\n\n");
    if (list_) return s.out.write(tensor_table(v, s.term));
    s.out.write(verdict_text(v, s.term) + "\n");
    std::vector<detailed_tensor> details;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (!shows_details(tensors[i], tensors.size())) continue;
      details.push_back({tensors[i], v.tensors[i]});
    }
    if (!details.empty()) return write_details(details, formats, scale_, s);
    s.out.write(
        "more: --list, --details NAME, --stats, --recipes, --json; fpinspect report FILE\n");
  }

  executor where_;
};

const registered tensor_here("tensor",
                             "Say which formats suit the tensors of files, and what is lost", 100,
                             run_of<tensor_command>);

}  // namespace
}  // namespace fpinspect
