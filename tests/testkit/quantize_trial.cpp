// Runs and checks single calls of a quantizer.
#include "quantize_trial.hpp"

#include <algorithm>
#include <exception>

#include "explain.hpp"
#include "guarded_array.hpp"
#include "samebits/error.hpp"
#include "samebits/recipe.hpp"

namespace samebits::testkit {
namespace {

std::size_t width(format_id f) { return static_cast<std::size_t>(storage_bytes(f)); }

void require_element_size(const char* what, std::size_t got, format_id format) {
  if (got == width(format)) return;
  throw invalid_argument(std::string(what) + " of the quantizer under test has elements of " +
                         std::to_string(got) + " bytes, expected " + std::to_string(width(format)) +
                         " of " + std::string(name(format)));
}

std::int64_t number_of_scales(const code_matrix& in, const tile_shape& tile) {
  const matrix_shape scales = scales_shape(in.rows, in.cols, tile);
  return scales.rows * scales.cols;
}

std::string exception_of(const raw_quantizer& function, const raw_quantize_call& call) {
  try {
    function.call(call);
  } catch (const std::exception& e) {
    return std::string("threw: ") + e.what();
  } catch (...) {
    return "threw something that is no std::exception";
  }
  return {};
}

}  // namespace

quantizer_under_test quantizer_of(std::string_view recipe, format_id from, format_id to) {
  const recipe_preset* const preset = find_recipe(recipe);
  if (preset == nullptr) {
    throw invalid_argument("recipe: no recipe has the name '" + std::string(recipe) +
                           "'; `fpinspect recipes` lists them");
  }
  if (preset->rules.source == scale_source::delayed) {
    throw invalid_argument("recipe: the scales of " + std::string(recipe) +
                           " are delayed; check_quantize needs scales of the matrix itself");
  }
  return {.from = from,
          .to = to,
          .options = options_of(preset->rules),
          .scale_format = preset->rules.scale_format};
}

matrix_shape tile_extent(const code_matrix& in, const tile_shape& tile) {
  return {tile.rows != 0 ? tile.rows : std::max<std::int64_t>(in.rows, 1),
          tile.cols != 0 ? tile.cols : std::max<std::int64_t>(in.cols, 1)};
}

quantized_codes quantized_by(const quantizer_under_test& quantizer, const code_matrix& in) {
  const quantizer_under_test& q = quantizer;
  const matrix_shape shape = scales_shape(in.rows, in.cols, q.options.tile);
  guarded_array elements(width(q.from), 0, in.codes.size());
  guarded_array codes(width(q.to), 0, in.codes.size());
  guarded_array scales(width(q.scale_format), 0, static_cast<std::size_t>(shape.rows * shape.cols));
  elements.store(in.codes);
  const auto* const source = elements.elements();
  quantize(view_of_codes(q.from, static_cast<const void*>(source), in.rows, in.cols),
           {.codes = view_of_codes(q.to, codes.elements(), in.rows, in.cols),
            .scales = view_of_codes(q.scale_format, scales.elements(), shape.rows, shape.cols)},
           q.options, {"reference", 1});
  return {codes.codes(), scales.codes()};
}

quantize_runner::quantize_runner(const quantizer_under_test& quantizer,
                                 const raw_quantizer& function)
    : quantizer_(quantizer), function_(function) {
  require_element_size("in", function.in_bytes, quantizer.from);
  require_element_size("codes", function.code_bytes, quantizer.to);
  require_element_size("scales", function.scale_bytes, quantizer.scale_format);
  if (quantizer.options.inverse_scales.data != nullptr ||
      quantizer.options.skip_if_nonzero != nullptr || !quantizer.options.workspace.empty()) {
    throw invalid_argument(
        "quantizer.options: inverse_scales, skip_if_nonzero and workspace must be empty");
  }
  static_cast<void>(quantized_by(quantizer, {}));  // throws for options that quantize() refuses
}

quantize_verdict quantize_runner::run(const code_matrix& in) {
  guarded_array elements(function_.in_bytes, 0, in.codes.size());
  guarded_array codes(function_.code_bytes, 0, in.codes.size());
  const std::int64_t scale_count = number_of_scales(in, quantizer_.options.tile);
  guarded_array scales(function_.scale_bytes, 0, static_cast<std::size_t>(scale_count));
  elements.store(in.codes);
  quantize_verdict v;
  v.thrown =
      exception_of(function_, {elements.memory(), codes.memory(), scales.memory(), elements.at(),
                               codes.at(), scales.at(), in.rows, in.cols, scale_count});
  if (!v.thrown.empty()) return v;
  if (!codes.guards_are_intact()) v.trouble = "wrote outside its codes";
  if (!scales.guards_are_intact()) v.trouble = "wrote outside its scales";
  if (elements.codes() != in.codes || !elements.guards_are_intact()) {
    v.trouble = "wrote to its input";
  }
  if (!v.trouble.empty()) return v;
  seen_quantize_call call{in, {codes.codes(), scales.codes()}, quantized_by(quantizer_, in)};
  v = compared(call);
  if (v.failed() || seen_elements_ < max_seen) {
    seen_elements_ += in.codes.size();
    seen_.push_back(std::move(call));
  }
  return v;
}

quantize_verdict quantize_runner::compared(const seen_quantize_call& call) {
  quantize_verdict v;
  const quantizer_under_test& q = quantizer_;
  const matrix_shape tile = tile_extent(call.in, q.options.tile);
  const std::int64_t tiles_in_row = (call.in.cols + tile.cols - 1) / tile.cols;
  for (std::size_t i = 0; i < call.expected.scales.size(); ++i) {
    ++compared_;
    const std::uint64_t got = call.got.scales[i];
    if (is_right(q.scale_format, q.nan, got, call.expected.scales[i])) continue;
    if (v.wrong_scales++ > 0) continue;
    const auto n = static_cast<std::int64_t>(i);
    const std::int64_t row = n / tiles_in_row * tile.rows;
    const std::int64_t col = n % tiles_in_row * tile.cols;
    v.wrong = {quantized_part::scale,
               call.in.rows,
               call.in.cols,
               n / tiles_in_row,
               n % tiles_in_row,
               row,
               col,
               call.in.codes[static_cast<std::size_t>(row * call.in.cols + col)],
               got,
               call.expected.scales[i]};
  }
  for (std::size_t i = 0; i < call.expected.codes.size(); ++i) {
    ++compared_;
    const std::uint64_t got = call.got.codes[i];
    if (is_right(q.to, q.nan, got, call.expected.codes[i])) continue;
    if (v.wrong_codes++ > 0 || v.wrong) continue;
    const std::int64_t row = static_cast<std::int64_t>(i) / call.in.cols;
    const std::int64_t col = static_cast<std::int64_t>(i) % call.in.cols;
    v.wrong = {quantized_part::code,
               call.in.rows,
               call.in.cols,
               row / tile.rows,
               col / tile.cols,
               row,
               col,
               call.in.codes[i],
               got,
               call.expected.codes[i]};
  }
  return v;
}

}  // namespace samebits::testkit
