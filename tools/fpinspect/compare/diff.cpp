// `fpinspect diff`: explains why codes and scales of two quantizations of one tensor differ.
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fpinspect/cli/command.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/files.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/compare/diff_cause.hpp"
#include "fpinspect/formats/describe.hpp"
#include "fpinspect/quantize/quantize_source.hpp"
#include "samebits/scalar.hpp"
#include "tensor_file/escape.hpp"
#include "tensor_file/tensor.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;
using samebits::matrix_shape;
using samebits::tensor_file::tensor_info;

/// A file written by `quantize`.
struct quantized_file {
  quantized_file(std::string_view which, const std::string& name)
      : path(name), file(open_file(whole_file(which, name))) {
    tile = stored_tile(path, file);
    for (const auto& [key, text] : file.metadata()) {
      if (key == "samebits.rule") stochastic = text.find("stochastic") != std::string::npos;
      if (key.starts_with("samebits.") && key != "samebits.recipe") rules += text + "; ";
    }
    if (!tile) {
      refuse_content(
          path, "has no samebits.block among its metadata; `fpinspect compare` takes any arrays");
    }
  }

  static const std::string& whole_file(std::string_view which, const std::string& name) {
    if (const auto tensor = locate(name).tensor) {
      throw usage_error(cat(which, ": whole files are compared; leave ",
                            samebits::tensor_file::quote("#" + *tensor), " out"));
    }
    return name;
  }

  [[nodiscard]] const tensor_info* find(std::string_view name) const {
    for (const tensor_info& info : file.tensors()) {
      if (info.name == name) return &info;
    }
    return nullptr;
  }

  std::string path;
  samebits::tensor_file::tensor_file file;
  std::optional<samebits::tile_shape> tile;
  std::string rules;  ///< all metadata on how the file was made, except the recipe's name
  bool stochastic = false;
};

/// Codes and scales of one output.
struct quantized_matrix {
  quantized_matrix(const quantized_file& from, const std::string& suffix, samebits::tile_shape t)
      : tile(t) {
    const tensor_info& info = from.file.find("codes" + suffix);
    const auto code_format = samebits::tensor_file::format_of(info.type);
    if (code_format != format_id::e4m3 && code_format != format_id::e5m2) {
      refuse_content(from.path, "codes" + suffix + " must be e4m3 or e5m2");
    }
    format = *code_format;
    shape = matrix_of(info);
    codes.resize(info.bytes);
    from.file.read_codes(info, 0, info.count, codes.data());
    const tensor_info& of_scales = from.file.find("scales" + suffix);
    const auto scale_format = samebits::tensor_file::format_of(of_scales.type);
    const matrix_shape tiles = samebits::scales_shape(shape.rows, shape.cols, tile);
    const bool known = scale_format == format_id::fp32 || scale_format == format_id::e8m0;
    if (!known || matrix_of(of_scales) != tiles) {
      refuse_content(from.path, "scales" + suffix + " must be fp32 or e8m0 of one element a tile");
    }
    scale_cols = tiles.cols;
    const auto width = static_cast<std::size_t>(samebits::storage_bytes(*scale_format));
    std::vector<std::byte> bytes(of_scales.bytes);
    from.file.read_codes(of_scales, 0, of_scales.count, bytes.data());
    for (std::size_t i = 0; i < of_scales.count; ++i) {
      const std::uint64_t code = load_code(&bytes[i * width], width);
      scales.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(
          samebits::convert_code(*scale_format, format_id::fp32, code).code)));
    }
  }

  [[nodiscard]] std::size_t tile_of(std::int64_t row, std::int64_t col) const {
    const std::int64_t r = tile.rows == 0 ? 0 : row / tile.rows;
    const std::int64_t c = tile.cols == 0 ? 0 : col / tile.cols;
    return static_cast<std::size_t>(r * scale_cols + c);
  }
  [[nodiscard]] coded_element at(std::int64_t row, std::int64_t col) const {
    const auto i = static_cast<std::size_t>(row * shape.cols + col);
    return {std::to_integer<std::uint8_t>(codes[i]), scales[tile_of(row, col)]};
  }

  samebits::tile_shape tile;
  format_id format = format_id::e4m3;
  matrix_shape shape;
  std::int64_t scale_cols = 0;
  std::vector<std::byte> codes;
  std::vector<float> scales;
};

struct difference_counts {
  std::uint64_t compared = 0, differ = 0;

  friend difference_counts operator+(const difference_counts& a, const difference_counts& b) {
    return {a.compared + b.compared, a.differ + b.differ};
  }
};

struct difference {
  difference_counts codes, scales;
  std::array<std::uint64_t, cause_count> why{};
  std::string first_unexplained;

  void note(cause c) { ++why[static_cast<std::size_t>(c)]; }
};

/// The elements that were quantized, if they are known.
struct known_elements {
  format_id format = format_id::fp32;
  source_matrix matrix;

  [[nodiscard]] double at(std::int64_t row, std::int64_t col, bool transposed) const {
    const auto width = static_cast<std::size_t>(samebits::storage_bytes(format));
    const std::int64_t i = transposed ? col * matrix.view.cols + row : row * matrix.view.cols + col;
    const auto* p =
        static_cast<const std::byte*>(matrix.view.data) + static_cast<std::size_t>(i) * width;
    const std::uint64_t code = load_code(p, width);
    return std::bit_cast<double>(samebits::convert_code(format, format_id::fp64, code).code);
  }
};

/// Compares one output of both files.
class matrix_comparison {
 public:
  matrix_comparison(const quantized_matrix& a, const quantized_matrix& b, bool stochastic_a,
                    bool stochastic_b, bool same_rules)
      : a_(a),
        b_(b),
        cells_a_(a.format, stochastic_a),
        cells_b_(b.format, stochastic_b),
        same_rules_(same_rules) {}

  void run(const std::string& suffix, const std::optional<known_elements>& source,
           difference& all) const {
    const bool one_tiling = a_.tile == b_.tile;
    std::vector<bool> explained(a_.scales.size(), true);
    std::vector<bool> special(a_.scales.size(), false);
    for (std::int64_t row = 0; row < a_.shape.rows; ++row) {
      for (std::int64_t col = 0; col < a_.shape.cols; ++col) {
        const coded_element in_a = a_.at(row, col);
        const coded_element in_b = b_.at(row, col);
        const std::size_t tile = a_.tile_of(row, col);
        std::optional<double> x;
        if (source) x = source->at(row, col, suffix == "_t");
        ++all.codes.compared;
        if (cells_a_.is_nan_or_inf(in_a.code) || cells_b_.is_nan_or_inf(in_b.code) ||
            (x && !(*x - *x == 0))) {
          special[tile] = true;
        } else if (!can_be_one(cells_a_, in_a, cells_b_, in_b, x)) {
          explained[tile] = false;
        }
        if (in_a.code == in_b.code && a_.format == b_.format) continue;
        ++all.codes.differ;
        const cause why = cause_of_codes(cells_a_, in_a, cells_b_, in_b, x, same_rules_);
        all.note(why);
        if (why == cause::unexplained) name_first(cat("codes", suffix), row, col, all);
      }
    }
    if (!one_tiling) return;
    for (std::size_t i = 0; i < a_.scales.size(); ++i) {
      ++all.scales.compared;
      const float scale_a = a_.scales[i];
      const float scale_b = b_.scales[i];
      if (std::bit_cast<std::uint32_t>(scale_a) == std::bit_cast<std::uint32_t>(scale_b)) continue;
      ++all.scales.differ;
      const cause why = cause_of_scales(scale_a, scale_b, explained[i], special[i], same_rules_);
      all.note(why);
      if (why == cause::unexplained) {
        const auto at = static_cast<std::int64_t>(i);
        name_first(cat("scales", suffix), at / a_.scale_cols, at % a_.scale_cols, all);
      }
    }
  }

 private:
  static void name_first(const std::string& tensor, std::int64_t row, std::int64_t col,
                         difference& all) {
    if (all.first_unexplained.empty()) {
      all.first_unexplained = cat(tensor, " [", row, ", ", col, "]");
    }
  }

  const quantized_matrix& a_;
  const quantized_matrix& b_;
  code_cells cells_a_;
  code_cells cells_b_;
  bool same_rules_;
};

samebits::tile_shape tile_for(const quantized_file& file, bool turned) {
  const samebits::tile_shape t = *file.tile;
  return turned ? samebits::tile_shape{t.cols, t.rows} : t;
}

difference difference_of(const quantized_file& a, const quantized_file& b,
                         const std::optional<known_elements>& source) {
  const bool same_rules = a.rules == b.rules;
  difference all;
  bool any = false;
  for (const char* suffix : {"", "_col", "_t"}) {
    const std::string codes = std::string("codes") + suffix;
    if (a.find(codes) == nullptr || b.find(codes) == nullptr) continue;
    any = true;
    const bool turned = *suffix != '\0';
    const quantized_matrix in_a(a, suffix, tile_for(a, turned));
    const quantized_matrix in_b(b, suffix, tile_for(b, turned));
    if (in_a.shape != in_b.shape) refuse_content(b.path, codes + " has another shape than in A");
    const bool transposed = std::string_view(suffix) == "_t";
    if (source) {
      const samebits::const_matrix_view& x = source->matrix.view;
      const matrix_shape shape =
          transposed ? matrix_shape{x.cols, x.rows} : matrix_shape{x.rows, x.cols};
      if (shape != in_a.shape) throw usage_error("--source: has another shape than " + codes);
    }
    matrix_comparison(in_a, in_b, a.stochastic, b.stochastic, same_rules).run(suffix, source, all);
  }
  if (!any) refuse_content(b.path, "has no codes in common with A");
  return all;
}

json_object json_of(const difference& d) {
  const auto part = [](const difference_counts& counts) {
    return json_line({{"compared", counts.compared}, {"differ", counts.differ}});
  };
  const difference_counts both = d.codes + d.scales;
  json_object why;
  for (std::size_t i = 0; i < cause_count; ++i) why.add(name(static_cast<cause>(i)), d.why[i]);
  return {{"compared", both.compared},
          {"differ", both.differ},
          {"why", why},
          {"codes", part(d.codes)},
          {"scales", part(d.scales)}};
}

std::string text_of(const difference& d) {
  const auto part = [](const char* which, const difference_counts& counts) {
    return cat(which, ": ", counts.differ, " of ", counts.compared, " differ\n");
  };
  std::string text = part("codes", d.codes) + part("scales", d.scales);
  for (std::size_t i = 0; i < cause_count; ++i) {
    if (d.why[i] == 0) continue;
    text += cat("  ", left(name(static_cast<cause>(i)), 12), d.why[i], "\n");
  }
  if (d.first_unexplained.empty()) return text;
  return cat(text, "  first unexplained: ", d.first_unexplained, "\n");
}

class diff_command final : public command {
 public:
  void options(option_list& add) override {
    add.required("A", a_, "A file that quantize wrote");
    add.required("B", b_, "Another one of the same tensor");
    add.text("--source", source_,
             "The tensor: FILE.npy, .npz, .safetensors or .gguf, FILE#TENSOR, or -");
    add.text("--from", from_, "Its integers are codes of this format");
    add.need({"--from"}, "--source");
  }

  void run(const session& s) override {
    const quantized_file a("A", a_);
    const quantized_file b("B", b_);
    std::optional<source_tensor> tensor;
    std::optional<known_elements> source;
    if (!source_.empty()) {
      tensor = open_source("--source", source_, "--from", from_);
      require_quantizable(tensor->format(), source_);
      source.emplace(tensor->format(), matrix_of(tensor->file, tensor->info, tensor->how));
    }
    const difference d = difference_of(a, b, source);
    if (s.json) {
      s.write_json(json_object{{"a", a_}, {"b", b_}}.add(json_of(d)));
    } else {
      s.out.write(text_of(d));
    }
    const difference_counts both = d.codes + d.scales;
    if (both.differ == 0) return;
    s.out.flush();
    throw check_failed(
        cat("diff: ", number_of(both.differ, "result"), both.differ == 1 ? " differs" : " differ"));
  }

 private:
  std::string a_;
  std::string b_;
  std::string source_;
  std::string from_;
};

const registered<diff_command> diff_here("diff", "Say why two quantizations of a tensor differ",
                                         80);

}  // namespace
}  // namespace fpinspect
