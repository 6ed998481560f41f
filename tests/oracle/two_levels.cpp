// Two levels, rule by rule.
#include "oracle/two_levels.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "oracle/convert.hpp"
#include "oracle/elementary.hpp"

namespace samebits::oracle {
namespace {

constexpr std::uint32_t one = 0x3F800000;
constexpr std::uint32_t one_and_a_half = 0x3FC00000;
constexpr std::uint32_t infinity = 0x7F800000;
constexpr std::uint32_t flt_max = 0x7F7FFFFF;

bool is_nan(std::uint32_t code) { return code % 0x80000000u > infinity; }

std::uint32_t at_most_flt_max(std::uint32_t x) {
  return is_nan(x) ? flt_max : std::min(x, flt_max);
}

/// The number in `f` nearest to x, saturated, as a binary32 code.
std::uint32_t nearest_in(const format& f, std::uint32_t x) {
  const cast_rule rule{rounding::nearest_even, overflow::saturate, nan_policy::canonical};
  return static_cast<std::uint32_t>(convert(f, fp32(), convert(fp32(), f, x, rule), {}));
}

std::uint32_t in_e4m3(std::uint32_t x) { return nearest_in(format_named("e4m3"), x); }

bool tries_two_scales(scale_rule rule) {
  return rule == scale_rule::nvfp4_4over6_mae || rule == scale_rule::nvfp4_4over6_mse;
}

/// 448 * M, for four over six 256 * M.
std::uint32_t range_of(scale_rule rule, const format& to) {
  return multiply32(tries_two_scales(rule) ? 0x43800000 : 0x43E00000, largest_of(to));
}

/// S of TransformerEngine from the amax of the tensor.
std::uint32_t encode_scale(scale_rule rule, const format& to, std::uint32_t amax) {
  const std::uint32_t s = at_most_flt_max(divide32(range_of(rule, to), amax));
  return amax == 0 || s == 0 ? one : s;
}

/// The scale with the factor 1 / (s * (1 / S)).
tile_scale with_factor(std::uint32_t s, std::uint32_t encode) {
  const std::uint32_t product = multiply32(s, divide32(one, encode));
  return {s, at_most_flt_max(divide32(one, product))};
}

/// The sum of the errors of a tile under a scale.
std::uint32_t error_of(const scale_settings& settings, const format& to, const tile_scale& scale,
                       std::span<const std::uint32_t> elements, std::size_t columns) {
  std::array<std::uint32_t, 16> rows = {};
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::uint32_t q = nearest_in(to, multiply32(elements[i], scale.factor));
    const std::uint32_t restored = divide32(
        multiply32(multiply32(q, scale.s), settings.tensor_scale), range_of(settings.rule, to));
    const std::uint32_t e = subtract32(restored, elements[i]);
    const bool absolute = settings.rule == scale_rule::nvfp4_4over6_mae;
    std::uint32_t& row = rows.at(i / columns);
    row = add32(row, absolute ? e % 0x80000000u : multiply32(e, e));
  }
  for (std::size_t count = 8; count >= 1; count /= 2) {
    for (std::size_t i = 0; i < count; ++i) rows[i] = add32(rows[i], rows[i + count]);
  }
  return rows[0];
}

}  // namespace

bool is_two_level(scale_rule rule) {
  return rule == scale_rule::nvfp4_te || rule == scale_rule::nvfp4_static6 ||
         tries_two_scales(rule) || rule == scale_rule::nvfp4_torchao ||
         rule == scale_rule::nvfp4_vllm;
}

std::uint32_t tensor_scale_of(scale_rule rule, const format& to, std::uint32_t amax) {
  if (rule == scale_rule::nvfp4_torchao) return divide32(amax, range_of(rule, to));
  if (rule == scale_rule::nvfp4_vllm) return amax == 0 ? one : divide32(range_of(rule, to), amax);
  return amax;
}

tile_scale two_level_scale(const scale_settings& settings, const format& to, std::uint32_t a,
                           std::span<const std::uint32_t> elements, std::size_t columns) {
  const std::uint32_t m = largest_of(to);
  const std::uint32_t tensor = settings.tensor_scale;
  const std::uint32_t encode = encode_scale(settings.rule, to, tensor);
  const std::uint32_t base = at_most_flt_max(multiply32(divide32(a, m), encode));
  switch (settings.rule) {
    case scale_rule::nvfp4_te:
      return with_factor(
          in_e4m3(at_most_flt_max(multiply32(a, multiply32(encode, divide32(one, m))))), encode);
    case scale_rule::nvfp4_static6: {
      const tile_scale scale = with_factor(in_e4m3(base), encode);
      return {scale.s, scale.s == 0 ? 0 : scale.factor};
    }
    case scale_rule::nvfp4_4over6_mae:
    case scale_rule::nvfp4_4over6_mse: {
      const tile_scale six = with_factor(in_e4m3(base), encode);
      const tile_scale four = with_factor(in_e4m3(multiply32(base, one_and_a_half)), encode);
      const std::uint32_t of_six = error_of(settings, to, six, elements, columns);
      const std::uint32_t of_four = error_of(settings, to, four, elements, columns);
      const bool smaller = !is_nan(of_six) && !is_nan(of_four) && of_four < of_six;
      return smaller ? four : six;
    }
    case scale_rule::nvfp4_torchao: {
      const std::uint32_t t = divide32(divide32(a, m), tensor);
      const std::uint32_t s = in_e4m3(is_nan(t) ? t : std::max(t, 0x3C800000u));  // 2^-6
      return {s, divide32(divide32(one, tensor), s)};
    }
    case scale_rule::nvfp4_vllm: {
      const std::uint32_t s = in_e4m3(multiply32(tensor, multiply32(a, divide32(one, m))));
      const auto unit = settings.reciprocal_unit;
      return {s, s == 0 ? 0 : unit(multiply32(s, unit(tensor)))};
    }
    default: throw std::invalid_argument("oracle: settings.rule has one level");
  }
}

std::uint32_t full_scale(scale_rule rule, const format& to, std::uint32_t tensor_scale,
                         std::uint32_t s) {
  if (!is_two_level(rule)) return s;
  if (rule == scale_rule::nvfp4_vllm) return divide32(s, tensor_scale);
  const std::uint32_t product = multiply32(s, tensor_scale);
  if (rule == scale_rule::nvfp4_torchao) return product;
  return multiply32(product, divide32(one, range_of(rule, to)));
}

}  // namespace samebits::oracle
