// `fpinspect demo` and `claims`: small computations, and statements of tutorials that they refute.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/command.hpp"
#include "fpinspect/explore/demos/demos.hpp"

namespace fpinspect {
namespace {

std::string cell_text(const demo_table::cell& cell) {
  const double* const value = std::get_if<double>(&cell);
  return value != nullptr ? general(*value, 6) : std::get<std::string>(cell);
}

/// Each column is two characters wider than its longest text.
std::string table_text(const demo_table& table) {
  std::vector<std::string> lines(table.rows.size() + 1);
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    std::vector<std::string> cells = {table.columns[i]};
    for (const auto& row : table.rows) cells.push_back(cell_text(row[i]));
    std::size_t width = 0;
    for (const std::string& cell : cells) width = std::max(width, cell.size() + 2);
    for (std::size_t k = 0; k < cells.size(); ++k) lines[k] += left(cells[k], width);
  }
  return joined(
      lines, [](const std::string& line) { return without_end_blanks(line) + "\n"; }, "");
}

json_value row_json(const demo_table& table, const std::vector<demo_table::cell>& row) {
  json_object cells;
  for (std::size_t i = 0; i < row.size(); ++i) {
    std::visit([&](const auto& cell) { cells.add(table.columns[i], cell); }, row[i]);
  }
  return cells.on_one_line();
}

class demo_command final : public command {
 public:
  void options(option_list& add) override {
    add.required(
        "NAME", shown_,
        [](std::string_view option, std::string_view text) {
          return &row_argument(option, text, demos());
        },
        "tiny-mul, grad-once, repeated-sum, error-growth or layernorm-variance");
  }

  void run(const session& s) override {
    const demo_table table = shown_->run();
    if (!s.json) {
      return s.out.write(cat(s.term.painted(paint::heading, shown_->question), "\n\n",
                             table_text(table), "\n", shown_->answer, "\n"));
    }
    s.write_json(
        {{"demo", shown_->name},
         {"question", shown_->question},
         {"rows", json_rows(table.rows, [&](const auto& row) { return row_json(table, row); })},
         {"answer", shown_->answer}});
  }

 private:
  const demo* shown_ = nullptr;
};

json_object claim_json(const claim& each) {
  const claim_evidence evidence = each.check();
  json_object figures;
  for (const auto& [name, value] : evidence.figures) figures.add(name, value);
  return {{"name", each.name},
          {"statement", each.statement},
          {"source", each.source},
          {"refuted", evidence.refuted},
          {"figures", figures}};
}

std::string claim_text(const claim& each, const terminal& term) {
  const claim_evidence evidence = each.check();
  std::string text = cat(term.painted(paint::heading, each.name), ": \"", each.statement, "\"\n");
  for (const std::string& line : evidence.lines) text += cat("  ", line, "\n");
  const std::string_view verdict = evidence.refuted ? "refuted" : "not refuted";
  return cat(text, "  ", term.painted(evidence.refuted ? paint::bad : paint::good, verdict), "   (",
             each.source, ")\n");
}

std::vector<claim> chosen_claims(const std::vector<std::string>& names) {
  if (names.empty()) return {claims().begin(), claims().end()};
  std::vector<claim> chosen;
  for (const std::string& name : names) chosen.push_back(row_argument("NAME", name, claims()));
  return chosen;
}

class claims_command final : public command {
 public:
  void options(option_list& add) override {
    add.list("NAME", chosen_, chosen_claims, "Names of statements (default: all)");
  }

  void run(const session& s) override {
    if (s.json) return s.write_json({{"claims", json_rows(chosen_, claim_json)}});
    const auto text = [&](const claim& each) { return claim_text(each, s.term); };
    s.out.write(joined(chosen_, text, "\n"));
  }

 private:
  std::vector<claim> chosen_;
};

const registered<demo_command> demo_here("demo", "Show what formats do to a small computation",
                                         210);
const registered<claims_command> claims_here("claims",
                                             "Refute statements of tutorials by computing them",
                                             230);

}  // namespace
}  // namespace fpinspect
