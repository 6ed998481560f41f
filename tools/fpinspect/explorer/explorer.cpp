// `fpinspect explorer`: writes a page on which numbers and their bits can be tried out.
#include "fpinspect/cli/command.hpp"
#include "fpinspect/cli/files.hpp"
#include "fpinspect/report/svg.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/rounding.hpp"

namespace fpinspect {
namespace {

/// The WebAssembly module in hexadecimal digits; empty if it was not built.
constexpr std::string_view explorer_module =
#include "explorer_module.inc"
    ;
constexpr std::string_view explorer_style =
#include "fpinspect/explorer/explorer_style.inc"
    ;
constexpr std::string_view explorer_script =
#include "fpinspect/explorer/explorer_script.inc"
    ;

std::string choice_list(std::string_view id, std::string_view label, const std::string& options) {
  return cat("<label for=\"", id, "\">", label, "</label><select id=\"", id, "\">", options,
             "</select>\n");
}

/// The names of an enum, except stochastic rounding, which needs random bits.
template <class Enum>
std::string enum_options() {
  std::string options;
  for (const auto& [value, text, doc] : table_of<Enum>) {
    if (text == "stochastic") continue;
    options += cat("<option value=\"", static_cast<int>(value), "\">", text, "</option>");
  }
  return options;
}

std::string explorer_page() {
  return cat(
      page_start("Bits of a number - fpinspect explorer", explorer_style, " 'wasm-unsafe-eval'"),
      "<header><h1>Bits of a number</h1>\n"
      "<p>Type a number, or press a bit to flip it. Each row is the number, rounded once into a "
      "format.</p></header>\n<main>\n<form id=\"settings\">"
      "<label for=\"number\">Number</label><input id=\"number\" value=\"0.1\" inputmode=\"text\" "
      "autocomplete=\"off\" spellcheck=\"false\">\n",
      choice_list("round", "Rounding", enum_options<rounding>()),
      choice_list("overflow", "Overflow", enum_options<overflow>()),
      "</form>\n<p id=\"status\" role=\"status\">This page needs JavaScript and WebAssembly.</p>\n"
      "<div id=\"formats\"></div>\n</main>\n<footer><p>Bits: sign, exponent, mantissa. Numbers are "
      "read as fp64. The arithmetic is the library's own, compiled to WebAssembly.</p>"
      "<p>Made by fpinspect ",
      SAMEBITS_VERSION, ".</p></footer>\n<script id=\"module\" type=\"text/plain\">",
      explorer_module, "</script>\n<script>", explorer_script, "</script>\n</body></html>\n");
}

run_function explorer_command(option_list& add) {
  auto& out = add.required("-o,--out", "FILE.html");
  add.refuse([&] { return add.given("--json"); },
             "--json: explorer writes a page; `fpinspect show` and `cast` have JSON");
  return [&](const session& s) {
    if (explorer_module.empty()) {
      throw backend_error("explorer: not in this build, which had no clang for wasm32-wasi");
    }
    output_file("--out", out, {".html"}).write({explorer_page()}, s.out);
  };
}

const registered explorer_here("explorer",
                               "Write a page on which to try out numbers and their bits", 260,
                               explorer_command);

}  // namespace
}  // namespace fpinspect
