// The known rule that makes the values of one tensor from those of another: casts and recipes.
#include "fpinspect/compare/comparison.hpp"
#include "samebits/convert.hpp"

namespace fpinspect {
namespace {

/// Formats to which values of checkpoints are rounded.
constexpr std::array rounded_formats = {format_id::bf16, format_id::fp16, format_id::e4m3,
                                        format_id::e5m2, format_id::fp32};

owned_matrix cast_to(owned_matrix& in, format_id to, const convert_options& options,
                     const executor& where) {
  owned_matrix out(to, in.shape);
  convert(in.view(), out.view(), options, where);
  return out;
}

/// The elements of a tensor: rows of its last axis.
owned_matrix elements_of(const compared_tensor& t) {
  owned_matrix all(t.format(), matrix_of(t.in.info));
  t.read(0, t.in.info.count, all.bytes.data());
  return all;
}

/// Whether a rule made the elements of `to`, whose format holds them exactly and whose NaNs are canonical.
bool is_made(const owned_matrix& to, owned_matrix& made, const executor& where) {
  return cast_to(made, to.format, {}, where).bytes == to.bytes;
}

/// Whether a format holds the values of one of rounded_formats.
bool holds(format_id wide, format_id narrow) {
  return wide == narrow || storage_bytes(wide) > std::max(storage_bytes(narrow), 1) ||
         (storage_bytes(wide) == 2 && storage_bytes(narrow) == 1);
}

/// " rounded to bf16 (nearest_even)"
std::string rounded_rule(owned_matrix& from, const owned_matrix& to, const executor& where) {
  for (const format_id f : rounded_formats) {
    if (!holds(to.format, f)) continue;
    for (const rounding r : {rounding::nearest_even, rounding::toward_zero}) {
      for (const overflow o : {overflow::ieee, overflow::saturate}) {
        owned_matrix made = cast_to(from, f, {.rounding = r, .overflow = o}, where);
        if (!is_made(to, made, where)) continue;
        return cat(" rounded to ", f, " (", r, o == overflow::saturate ? ", saturating)" : ")");
      }
    }
  }
  return {};
}

/// " by recipe TE_BLOCK_2D to e4m3"
/// @param stored  the target's codes and scales, or null: recipes of other tiles are none then
std::string requantized_rule(owned_matrix& from, const owned_matrix& to,
                             const quantized_matrix* stored, const executor& where) {
  if (from.format == format_id::fp64 || storage_bytes(from.format) == 1) return {};
  const auto scales = [&](const tile_shape& tile) {
    return scales_shape(from.shape.rows, from.shape.cols, tile);
  };
  for (const recipe_preset& preset : recipe_presets) {
    const recipe& rules = preset.rules;
    if (rules.source != scale_source::current || has_two_levels(rules.scale)) continue;
    if (stored != nullptr && scales(rules.tile) != scales(stored->tile())) continue;
    for (const format_id f : {rules.code_format, format_id::e5m2}) {
      if (f != rules.code_format && rules.code_format != format_id::e4m3) continue;
      owned_matrix made = requantized(from.view(), rules, f, where);
      if (is_made(to, made, where)) return cat(" by recipe ", preset.name, " to ", f);
    }
  }
  return {};
}

std::string rule_from(const char* what, const compared_tensor& a, const compared_tensor& b,
                      const executor& where) {
  owned_matrix from = elements_of(a);
  owned_matrix elements = elements_of(b);
  const owned_matrix to = cast_to(elements, elements.format, {}, where);
  std::string rule = rounded_rule(from, to, where);
  if (rule.empty()) rule = requantized_rule(from, to, b.made.get(), where);
  return rule.empty() ? rule : what + rule;
}

}  // namespace

std::string rule_between(const compared_pair& pair, const executor& where) {
  const std::string rule = rule_from("B is A", *pair.a, *pair.b, where);
  return rule.empty() ? rule_from("A is B", *pair.b, *pair.a, where) : rule;
}

}  // namespace fpinspect
