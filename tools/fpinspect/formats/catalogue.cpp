// `fpinspect formats`, `recipes`, `units` and `backends`: what the library has, one row for each.

#include "fpinspect/cli/command.hpp"
#include "fpinspect/formats/describe.hpp"
#include "fpinspect/quantize/quantize_source.hpp"
#include "samebits/core/tensor_unit.hpp"
#include "samebits/text.hpp"

namespace fpinspect {
namespace {

template <class Row>
struct listing {
  const char* key;  ///< of the rows in JSON
  std::span<const column<Row>> columns;
  std::vector<Row> (*rows)();
  const char* legend = "";
  std::string (*second_heading)() = [] { return std::string(); };
  /// Lines below that of a row.
  std::string (*below)(const Row&) = [](const Row&) { return std::string(); };
};

/// A subcommand without options that lists rows.
template <const auto& What>
run_function catalogue(option_list&) {
  return [](const session& s) {
    const auto all = What.rows();
    std::string text = s.term.painted(paint::heading, table_heading(What.columns));
    const std::string second = What.second_heading();
    if (!second.empty()) text += s.term.painted(paint::heading, second);
    for (const auto& row : all) text += table_line(What.columns, row) + What.below(row);
    s.write({{What.key, table_json(What.columns, all)}}, text + What.legend);
  };
}

// --- formats -----------------------------------------------------------------------------------

/// Properties of a format that are derived from its parameters.
struct format_facts {
  explicit format_facts(format_id id)
      : format(id),
        spec(spec_of(id)),
        sign_bits(code_bits(id) - spec.exponent_bits - spec.mantissa_bits),
        max(max_finite(id)),
        min_normal(samebits::min_normal(id)),
        decades(std::log10(decode_double(id, max)) -
                std::log10(decode_double(id, min_positive(id)))) {
    if (spec.special != specials::scale) min_subnormal = min_positive(id);
  }

  /// Bits of an element in packed storage.
  [[nodiscard]] int packed_bits() const { return code_bits(format) + spec.padding_bits; }
  /// Distinct finite values; +0 and -0 count once.
  [[nodiscard]] std::uint64_t values() const {
    const std::uint64_t largest = max >> spec.padding_bits;
    return spec.special == specials::scale ? largest + 1 : 2 * largest + 1;
  }
  [[nodiscard]] std::uint64_t nan_codes() const {
    switch (spec.special) {
      case specials::ieee: return 2 * ((std::uint64_t{1} << spec.mantissa_bits) - 1);
      case specials::fn: return 2;
      case specials::none: return 0;
      default: return 1;
    }
  }

  format_id format;
  format_spec spec;
  int sign_bits;
  std::uint64_t max;                           ///< as a code
  std::optional<std::uint64_t> min_normal;     ///< as a code
  std::optional<std::uint64_t> min_subnormal;  ///< as a code
  double decades;                              ///< log10(max / smallest positive)
};

json_value value_json(const format_facts& f, std::optional<std::uint64_t> code) {
  return code ? json_value(decode_double(f.format, *code)) : std::nullopt;
}

json_value code_of(const format_facts& f, std::optional<std::uint64_t> code) {
  return code ? json_value(code_text(f.format, *code)) : std::nullopt;
}

std::string power_of(const format_facts& f, std::optional<std::uint64_t> code) {
  return code ? power_text(exponent_of(decode_double(f.format, *code))) : "-";
}

/// A value in at most 8 characters: exact, or with three digits.
std::string short_value(const format_facts& f, std::uint64_t code) {
  const std::string text = to_exact_decimal(f.format, code);
  return text.size() <= 8 ? text : scientific(decode_double(f.format, code), 2);
}

std::string short_count(std::uint64_t count) {
  return count < 100'000'000 ? std::to_string(count) : scientific(static_cast<double>(count), 2);
}

constexpr column<format_facts> format_columns[] = {
    {"name", "format", 8, [](auto& f) { return f.spec.name; }},
    {"bits", "bits", -5, [](auto& f) { return code_bits(f.format); }},
    {"sign_bits", "", 0, [](auto& f) { return f.sign_bits; }},
    {"exponent_bits", "", 0, [](auto& f) { return f.spec.exponent_bits; }},
    {"mantissa_bits", "", 0, [](auto& f) { return f.spec.mantissa_bits; }},
    {"storage_bits", "", 0, [](auto& f) { return f.spec.storage_bits; }},
    {"", "s/e/m", -8, nullptr,
     [](auto& f) {
       return cat(f.sign_bits, "/", f.spec.exponent_bits, "/", f.spec.mantissa_bits);
     }},
    {"bias", "bias", -5, [](auto& f) { return f.spec.bias; }},
    {"specials", "", 0, [](auto& f) { return name(f.spec.special); }},
    {"max", "max", -10, [](auto& f) { return value_json(f, f.max); },
     [](auto& f) { return short_value(f, f.max); }},
    {"max_code", "", 0, [](auto& f) { return code_of(f, f.max); }},
    {"min_normal", "min", -8, [](auto& f) { return value_json(f, f.min_normal); },
     [](auto& f) { return power_of(f, f.min_normal); }},
    {"min_normal_code", "", 0, [](auto& f) { return code_of(f, f.min_normal); }},
    {"min_subnormal", "min", -8, [](auto& f) { return value_json(f, f.min_subnormal); },
     [](auto& f) { return power_of(f, f.min_subnormal); }},
    {"min_subnormal_code", "", 0, [](auto& f) { return code_of(f, f.min_subnormal); }},
    {"epsilon", "eps", -6, [](auto& f) { return std::ldexp(1.0, -f.spec.mantissa_bits); },
     [](auto& f) { return power_text(-f.spec.mantissa_bits); }},
    {"decades", "decades", -8, [](auto& f) { return f.decades; },
     [](auto& f) { return fixed(f.decades, 1); }},
    {"values", "values", -9, [](auto& f) { return f.values(); },
     [](auto& f) { return short_count(f.values()); }},
    {"inf_codes", "", 0, [](auto& f) { return f.spec.special == specials::ieee ? 2 : 0; }},
    {"nan_codes", "", 0, [](auto& f) { return f.nan_codes(); }},
    {"bytes_per_million", "MB", -5, [](auto& f) { return f.packed_bits() * 1'000'000 / 8; },
     [](auto& f) { return shortest(f.packed_bits() / 8.0); }},
};

constexpr listing<format_facts> formats_listing = {
    .key = "formats",
    .columns = format_columns,
    .rows =
        [] {
          const std::vector<format_id> all = all_formats();
          return std::vector<format_facts>(all.begin(), all.end());
        },
    .legend =
        "\nmin: smallest positive values; e8m0 has powers of two only, no zero and no sign\n"
        "decades: log10(max / smallest positive)   values: finite ones, both zeros as one\n"
        "MB: 10^6 bytes per million elements, packed\n",
    // "min normal" and "min subn." are wider than their columns.
    .second_heading = [] { return right("normal", 44) + right("subn.", 8) + "\n"; }};

// --- recipes -----------------------------------------------------------------------------------

constexpr column<recipe_preset> recipe_columns[] = {
    {"name", "recipe", 20, [](auto& p) { return p.name; }},
    {"code_format", "codes", 7, [](auto& p) { return name(p.rules.code_format); }},
    {"block", "block", 9, [](auto& p) { return block_text(p.rules.tile); }},
    {"scale_rule", "rule", 18, [](auto& p) { return name(p.rules.scale); }},
    {"scale_format", "scales", 8, [](auto& p) { return name(p.rules.scale_format); },
     [](auto& p) {
       const bool delayed = p.rules.source == scale_source::delayed;
       return delayed ? "delayed" : name(p.rules.scale_format);
     }},
    {"scales", "", 0, [](auto& p) { return name(p.rules.source); }},
    {"eps", "eps", 9, [](auto& p) { return double{p.rules.eps}; },
     [](auto& p) { return general(double{p.rules.eps}, 3); }},
    {"upper_bound", "", 0, [](auto& p) { return double{p.rules.upper_bound}; }},
    {"nonfinite", "nonfinite", 11, [](auto& p) { return name(p.rules.nonfinite); }},
    {"scale_overflow", "", 0, [](auto& p) { return name(p.rules.scale_overflow); }},
    {"overflow", "", 0, [](auto& p) { return name(p.rules.overflow); }},
    {"verified", "verified", 0, [](auto& p) { return name(p.verified); },
     [](auto& p) { return cat(p.verified, p.verified != p.nonfinite ? ", finite" : ""); }},
    {"verified_nonfinite", "", 0, [](auto& p) { return name(p.nonfinite); }},
    {"version", "", 0, [](auto& p) { return p.version; }},
    {"reproduces", "", 0, [](auto& p) { return p.reproduces; }},
    {"exceptions", "", 0, [](auto& p) { return p.exceptions; }},
};

constexpr listing<recipe_preset> recipes_listing = {
    .key = "recipes",
    .columns = recipe_columns,
    .rows = [] { return std::vector(std::begin(recipe_presets), std::end(recipe_presets)); },
    .legend =
        "library output: checked against the library's own output, on >= 10^7 finite elements "
        "and on\n"
        "  tiles with NaN and Inf\n"
        "library output, finite: checked on the finite elements; what the library does with "
        "NaN and Inf\n"
        "  was read in that source\n"
        "unverified: the formulas were read in that source; the library's own code was not "
        "run\n",
    .below =
        [](const recipe_preset& p) {
          return cat("  ", p.version, ": ", p.reproduces, "\n  not claimed: ", p.exceptions, "\n");
        }};

// --- units -------------------------------------------------------------------------------------

std::string_view evidence_text(evidence e) { return e == evidence::none ? "-" : name(e); }

constexpr column<tensor_arithmetic> unit_columns[] = {
    {"unit", "unit", 20, [](auto& u) { return name(u.unit); }},
    {"operands", "operands", 10, [](auto& u) { return name(u.operands); }},
    {"products", "products", -8, [](auto& u) { return u.products; },
     [](auto& u) {
       return cat(u.products, u.narrow_products == 0 ? "" : cat(", ", u.narrow_products));
     }},
    {"narrow_products", "", 0, [](auto& u) { return u.narrow_products; }},
    {"group", "group", -7, [](auto& u) { return u.group; }},
    {"alignment_bits", "kept", -6, [](auto& u) { return u.alignment_bits; }},
    {"fraction_bits", "bits", -6, [](auto& u) { return u.fraction_bits; }},
    {"floor_fp32", "", 0, [](auto& u) { return u.floor_fp32; }},
    {"floor_fp16", "", 0, [](auto& u) { return u.floor_fp16; }},
    {"", "", 2, nullptr, [](auto&) { return ""; }},
    {"path", "path", 9, [](auto& u) { return u.path == tensor_path::fused ? "fused" : "by fp16"; }},
    {"evidence_fp32", "fp32", 12, [](auto& u) { return name(u.fp32); },
     [](auto& u) { return evidence_text(u.fp32); }},
    {"evidence_fp16", "fp16", 12, [](auto& u) { return name(u.fp16); },
     [](auto& u) { return evidence_text(u.fp16); }},
    {"source", "source", 0, [](auto& u) { return u.source; }},
};

constexpr listing<tensor_arithmetic> units_listing = {
    .key = "units",
    .columns = unit_columns,
    .rows =
        [] {
          std::vector<tensor_arithmetic> all;
          for (int i = 0; i < tensor_row_count; ++i) {
            all.push_back(tensor_row(i));
          }
          return all;
        },
    .legend =
        "\n"
        "hardware    equal to results that this project took from a GPU\n"
        "published   equal to results of GPUs that others have published\n"
        "literature  stated by others, not compared with a GPU by this project\n"
        "[H] this project on an H200, 2026-11-20   [K] Khattak and Mikaitis, arXiv 2512.07004\n"
        "[X] Xie et al., arXiv 2511.10909          [F] Fasi et al. 2021, PeerJ CS 7:e330\n"
        "[S] what ptxas 13.0 emits\n"};

// --- backends ----------------------------------------------------------------------------------

constexpr column<backend_info> backend_columns[] = {
    {"name", "backend", 15, [](auto& b) { return b.name; }},
    {"description", "", 0, [](auto& b) { return b.description; }},
    {"memory", "memory", 8,
     [](auto& b) { return b.space == memory_space::host ? "host" : "device"; }},
    {"supported", "", 0, [](auto& b) { return b.supported; }},
    {"default", "here", 9, [](auto& b) { return b.is_default; },
     [](auto& b) { return b.is_default  ? "default"
                          : b.supported ? "yes"
                                        : "no"; }},
    {"why_unsupported", "what it is", 0, [](auto& b) { return b.why_unsupported; },
     [](auto& b) {
       return cat(b.description, b.supported ? "" : cat(" (", b.why_unsupported, ")"));
     }},
};

constexpr listing<backend_info> backends_listing = {
    .key = "backends", .columns = backend_columns, .rows = [] {
      static_cast<void>(backend_argument(""));  // refuses a SAMEBITS_BACKEND that is not available
      return compiled_backends();
    }};

const registered formats_here("formats", "List the formats and their limits", 10,
                              catalogue<formats_listing>);
const registered recipes_here("recipes", "List the quantization recipes that have a name", 70,
                              catalogue<recipes_listing>);
const registered units_here("units", "List the tensor cores that matmul computes like", 150,
                            catalogue<units_listing>);
const registered backends_here("backends", "List the backends and what this machine can run", 160,
                               catalogue<backends_listing>);

}  // namespace
}  // namespace fpinspect
