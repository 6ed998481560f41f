// Recipes: the quantization rules of other libraries as data, and a table of named presets.
//
//   const samebits::recipe_preset* p = samebits::find_recipe("DEEPGEMM_FP32_CUDA");
//   samebits::quantize(in, {.codes = codes, .scales = scales}, p->rules);
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string_view>

#include "samebits/backend.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/core/scaling.hpp"
#include "samebits/core/table.hpp"
#include "samebits/quantize.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// Source of the scales: `current` is the amax of the tensor itself, `delayed` a state computed
/// from earlier tensors (samebits/delayed_scaling.hpp).
enum class scale_source : std::uint8_t { current, delayed };
template <>
inline constexpr auto table_of<scale_source> = enum_table<scale_source::delayed>({"current",
                                                                                  "delayed"});

/// Everything besides the input that determines codes and scales, for a rule with two levels also
/// the tensor's scale. Codes are rounded to nearest even.
struct recipe {
  tile_shape tile = {1, 128};  ///< of row-wise outputs
  scale_rule scale = scale_rule::te;
  float eps = 0.0f;
  float upper_bound = std::numeric_limits<float>::infinity();
  samebits::nonfinite nonfinite = samebits::nonfinite::te;
  samebits::scale_overflow scale_overflow = samebits::scale_overflow::flt_max;
  samebits::overflow overflow = samebits::overflow::saturate;
  format_id scale_format = format_id::fp32;  ///< or e8m0; e4m3 with two levels
  scale_source source = scale_source::current;
  format_id code_format = format_id::e4m3;  ///< e4m3 stands for e5m2, too

  friend constexpr bool operator==(const recipe&, const recipe&) = default;
};

/// Requires rules by which a matrix could be quantized: quantize() refuses no others but for their input.
///
/// @throws invalid_argument, naming the member of quantize_options, or `outputs` for scale_format
void check(const recipe& rules);

/// Evidence that a preset has the bits of its library.
enum class recipe_evidence : std::uint8_t {
  unverified,      ///< formulas read in the library's source; not compared with its output
  library_output,  ///< checked against the library's own output, recorded under tests/golden
};
template <>
inline constexpr auto table_of<recipe_evidence> =
    enum_table<recipe_evidence::library_output>({"unverified", "library output"});

/// A named recipe: its rules, the library calls that it reproduces, and the evidence.
struct recipe_preset {
  std::string_view name;
  recipe rules;
  std::string_view reproduces;  ///< which calls of the library
  std::string_view version;     ///< version of the source that was read, and run if verified
  std::string_view exceptions;  ///< exceptions: cases in which equal bits are not claimed
  recipe_evidence verified = recipe_evidence::unverified;   ///< for finite elements
  recipe_evidence nonfinite = recipe_evidence::unverified;  ///< for tiles with NaN or Inf
};

namespace detail {

inline constexpr std::string_view transformer_engine = "TransformerEngine d0067d0 (2026-08-22)";
inline constexpr std::string_view deep_gemm = "DeepGEMM 54e2261 (2026-06-23)";
inline constexpr std::string_view torchao = "torchao 36027d8 (2026-08-21)";

/// MX: a scale in e8m0 for 32 elements.
constexpr recipe microscaling(scale_rule rule, format_id codes,
                              nonfinite policy = nonfinite::propagate) {
  return {.tile = {1, 32},
          .scale = rule,
          .nonfinite = policy,
          .scale_format = format_id::e8m0,
          .code_format = codes};
}

/// NVFP4: a scale in e4m3 for 16 elements or 16 x 16.
constexpr recipe nvfp4(scale_rule rule, nonfinite policy = nonfinite::skip_nan,
                       const tile_shape& tile = {1, 16}) {
  return {.tile = tile,
          .scale = rule,
          .nonfinite = policy,
          .scale_format = format_id::e4m3,
          .code_format = format_id::e2m1};
}

}  // namespace detail

/// The presets. `nonfinite` treats NaN and Inf as the library does, except in the cases that
/// `exceptions` lists. `nonfinite` says whether the library's treatment of NaN and Inf
/// was recorded or only read in its source. No preset makes a claim about a library's fused
/// kernels.
inline constexpr std::array<recipe_preset, 31> recipe_presets = {{
    {"TE_BLOCK_1D",
     {.tile = {1, 128}, .scale = scale_rule::te_pow2, .scale_overflow = scale_overflow::input_max},
     "Float8BlockScaling of activations and gradients, power-of-two scales (its default)",
     detail::transformer_engine,
     "padded scale layouts; NVTE_FP8_BLOCK_SCALING_FP32_SCALES=1 is scale rule te",
     recipe_evidence::library_output},
    {"TE_BLOCK_2D",
     {.tile = {128, 128},
      .scale = scale_rule::te_pow2,
      .scale_overflow = scale_overflow::input_max},
     "Float8BlockScaling of weights, power-of-two scales (its default)",
     detail::transformer_engine,
     "padded scale layouts; NVTE_FP8_BLOCK_SCALING_FP32_SCALES=1 is scale rule te",
     recipe_evidence::library_output},
    {"TE_CURRENT",
     {.tile = {0, 0}, .scale = scale_rule::te},
     "Float8CurrentScaling, amax_epsilon 0, no force_pow_2_scales",
     detail::transformer_engine,
     "its Python and C++ references where a is Inf: the kernel is followed",
     recipe_evidence::library_output},
    {"TE_DELAYED",
     {.tile = {0, 0}, .scale = scale_rule::te, .source = scale_source::delayed},
     "DelayedScaling, one process",
     detail::transformer_engine,
     "NaN: amaxes here keep it, its kernels drop it; the all-reduce of amaxes is the caller's; "
     "NVTE_UNFUSED_FP8_UPDATE=1 is zero_step::roll",
     recipe_evidence::library_output},
    {"DEEPGEMM_UE8M0",
     {.scale = scale_rule::pow2,
      .eps = 1e-4f,
      .nonfinite = nonfinite::propagate,
      .overflow = overflow::ieee},
     "per_token_cast_to_fp8 and, by tile, its siblings with use_ue8m0",
     detail::deep_gemm,
     "packed UE8M0 layouts; versions before 2026-04, pow(2, ceil(log2)); the sign of NaN codes; "
     "Inf under a PyTorch whose cast saturates; fused kernels",
     recipe_evidence::library_output,
     recipe_evidence::library_output},
    {"DEEPGEMM_FP32_CUDA",
     {.scale = scale_rule::dg_cuda,
      .eps = 1e-4f,
      .nonfinite = nonfinite::propagate,
      .overflow = overflow::ieee},
     "per_token_cast_to_fp8 and, by tile, its siblings on CUDA tensors, eager",
     detail::deep_gemm,
     "torch.compile; the sign of NaN codes; the bits of a NaN scale; fused kernels",
     recipe_evidence::library_output},
    {"DEEPGEMM_FP32_CPU",
     {.scale = scale_rule::rcp,
      .eps = 1e-4f,
      .nonfinite = nonfinite::propagate,
      .overflow = overflow::ieee},
     "per_token_cast_to_fp8 and, by tile, its siblings on CPU tensors, eager",
     detail::deep_gemm,
     "torch.compile; the sign of NaN codes; the bits of a NaN scale",
     recipe_evidence::library_output,
     recipe_evidence::library_output},
    {"DSV3_IEEE",
     {.scale = scale_rule::div, .eps = 1e-4f, .nonfinite = nonfinite::skip_nan},
     "act_quant of inference/kernel.py with division as IEEE 754 has it",
     "DeepSeek-V3 9b4e978 (2025-08-28)",
     "a GPU, where Triton 3.6 takes a * RN(1 / 448) for a / 448 and x / s within 2 ulp; a tile of "
     "NaN",
     recipe_evidence::library_output},
    {"VLLM_GROUP",
     {.scale = scale_rule::div, .eps = 1e-10f, .nonfinite = nonfinite::skip_nan},
     "per_token_group_quant in CUDA, fp32 scales",
     "vLLM 0.31.0",
     "0.33.0, which multiplies by RN(1 / s); NaN and Inf, which it makes -448, and a tile of NaN; "
     "UE8M0 by log2f; the fused "
     "silu kernel, which computes in bf16",
     recipe_evidence::library_output},
    {"TORCHAO_BLOCK",
     {.scale = scale_rule::te, .eps = 1e-12f, .nonfinite = nonfinite::skip_nan},
     "the blockwise training prototype's Triton kernels, 1 x 128",
     detail::torchao,
     "tails, which it refuses; Inf and NaN elements, which it makes 448; a tile of NaN",
     recipe_evidence::library_output},
    {"TORCHAO_ROW",
     {.tile = {1, 0},
      .scale = scale_rule::te_pow2,
      .eps = 1e-12f,
      .nonfinite = nonfinite::propagate},
     "rowwise scaling with power-of-two scales (its default); it stores S, this s = 1 / S",
     detail::torchao,
     "the 7404 values of S up to 44 ulp below a power of two, where floor(log2) errs; the sign of "
     "NaN codes; the bits of a NaN scale",
     recipe_evidence::library_output,
     recipe_evidence::library_output},
    {"FBGEMM_ROW",
     {.tile = {1, 0}, .scale = scale_rule::div, .eps = 0x1p-9f, .nonfinite = nonfinite::skip_nan},
     "quantize_fp8_per_row in CUDA: s at least 1 / (448 * 512) is amax at least 2^-9",
     "FBGEMM 71d6f8b (2026-08-21)",
     "fp16 and fp32, whose bits it takes for bf16; odd widths; a scale_ub below 2^-9; a row of "
     "NaN; its "
     "Triton kernels and stochastic rounding",
     recipe_evidence::library_output},
    {"MSAMP",
     {.tile = {0, 0}, .scale = scale_rule::te_pow2},
     "a tensor's first scaling: the power of two at or below M / amax, margin 0",
     "MS-AMP 9746ea8 (2025-12-01)",
     "the scale it keeps for zero and NaN; its Inf bug; M / amax that overflows; log2 just below a "
     "power of two",
     recipe_evidence::library_output},
    {"MXFP8_TE", detail::microscaling(scale_rule::mx_rceil, format_id::e4m3, nonfinite::skip_nan),
     "MXFP8BlockScaling; with Inf the byte is FE", detail::transformer_engine,
     "padded and swizzled scale layouts; its kernels, for Blackwell: the reference of their test "
     "ran; a tile of NaN, whose byte it makes 00",
     recipe_evidence::library_output, recipe_evidence::library_output},
    {"MXFP8_TORCHAO", detail::microscaling(scale_rule::mx_rceil, format_id::e4m3),
     "MXFP8 with ScaleCalculationMode.RCEIL; with Inf or NaN the byte is FF", detail::torchao,
     "codes of a tile whose byte is FF; versions that took ceil(log2), up to 22 ulp above a power "
     "of two",
     recipe_evidence::library_output, recipe_evidence::library_output},
    {"MXFP8_FLOOR", detail::microscaling(scale_rule::mx_floor, format_id::e4m3),
     "MXFP8 with ScaleCalculationMode.FLOOR (its default)", detail::torchao,
     "codes of a tile whose byte is FF", recipe_evidence::library_output,
     recipe_evidence::library_output},
    {"MXFP8_CEIL", detail::microscaling(scale_rule::mx_ceil, format_id::e4m3),
     "MXFP8 with ScaleCalculationMode.CEIL", detail::torchao, "codes of a tile whose byte is FF",
     recipe_evidence::library_output, recipe_evidence::library_output},
    {"MXFP8_EVEN", detail::microscaling(scale_rule::mx_even, format_id::e4m3),
     "MXFP8 with ScaleCalculationMode.EVEN", detail::torchao,
     "codes of a tile whose byte is FF; an amax that rounds to 2^128"},
    {"MXFP6_E2M3_FLOOR", detail::microscaling(scale_rule::mx_floor, format_id::e2m3),
     "MXFP6 in e2m3 with ScaleCalculationMode.FLOOR (its default)", detail::torchao,
     "codes of a tile whose byte is FF", recipe_evidence::library_output,
     recipe_evidence::library_output},
    {"MXFP6_E3M2_FLOOR", detail::microscaling(scale_rule::mx_floor, format_id::e3m2),
     "MXFP6 in e3m2 with ScaleCalculationMode.FLOOR (its default)", detail::torchao,
     "codes of a tile whose byte is FF", recipe_evidence::library_output,
     recipe_evidence::library_output},
    {"MXFP4_FLOOR", detail::microscaling(scale_rule::mx_floor, format_id::e2m1),
     "MXFP4 with ScaleCalculationMode.FLOOR (its default)", detail::torchao,
     "codes of a tile whose byte is FF", recipe_evidence::library_output,
     recipe_evidence::library_output},
    {"MXFP4_CEIL", detail::microscaling(scale_rule::mx_ceil, format_id::e2m1),
     "MXFP4 with ScaleCalculationMode.CEIL", detail::torchao, "codes of a tile whose byte is FF",
     recipe_evidence::library_output, recipe_evidence::library_output},
    {"MXFP4_EVEN", detail::microscaling(scale_rule::mx_even, format_id::e2m1),
     "MXFP4 with ScaleCalculationMode.EVEN", detail::torchao,
     "codes of a tile whose byte is FF; an amax that rounds to 2^128"},
    {"MXFP4_RCEIL", detail::microscaling(scale_rule::mx_rceil, format_id::e2m1),
     "MXFP4 with ScaleCalculationMode.RCEIL", detail::torchao, "codes of a tile whose byte is FF",
     recipe_evidence::library_output, recipe_evidence::library_output},
    {"NVFP4_TE", detail::nvfp4(scale_rule::nvfp4_te),
     "NVFP4BlockScaling of activations and gradients, without four over six; torchao's NVFP4 "
     "training",
     detail::transformer_engine,
     "an infinite or NaN amax of the tensor in its fused RHT kernels and in those of sharded "
     "weights; its stochastic rounding; use_fast_math; padded and swizzled scale layouts"},
    {"NVFP4_TE_2D", detail::nvfp4(scale_rule::nvfp4_te, nonfinite::skip_nan, {16, 16}),
     "NVFP4BlockScaling of weights, whose scale is stored for each of 16 rows",
     detail::transformer_engine,
     "an infinite or NaN amax of the tensor in its fused RHT kernels and in those of sharded "
     "weights; padded and swizzled scale layouts"},
    {"NVFP4_TE_4OVER6", detail::nvfp4(scale_rule::nvfp4_4over6_mae),
     "NVFP4BlockScaling with four over six, error MAE, bound 256", detail::transformer_engine,
     "bound 448; err_use_fast_math; padded and swizzled scale layouts"},
    {"NVFP4_TE_4OVER6_MSE", detail::nvfp4(scale_rule::nvfp4_4over6_mse),
     "NVFP4BlockScaling with four over six, error MSE, bound 256", detail::transformer_engine,
     "bound 448; err_use_fast_math; padded and swizzled scale layouts"},
    {"NVFP4_STATIC6", detail::nvfp4(scale_rule::nvfp4_static6),
     "static_6 of quantize/pytorch/reference.py", "fouroversix dadfad6 (2026-08)",
     "adaptive blocks, whose sums have no fixed order; the sign of codes of zeros; elements beyond "
     "7 once "
     "scaled, which its reference rounds to 8; NaN and Inf"},
    {"NVFP4_TORCHAO", detail::nvfp4(scale_rule::nvfp4_torchao, nonfinite::propagate),
     "NVFP4Tensor.to_nvfp4 (inference) with a per-tensor scale; without one, tensor scale 1",
     detail::torchao, "codes of NaN; the sign of a NaN scale", recipe_evidence::library_output},
    {"NVFP4_VLLM", detail::nvfp4(scale_rule::nvfp4_vllm),
     "cvt_warp_fp16_to_fp4 of vLLM, FlashInfer and TensorRT-LLM; give its global scale as the "
     "tensor's scale",
     "vLLM, read 2026-08", "in TensorRT-LLM a tile whose scale becomes zero; NaN; UE8M0 scales"},
}};

/// Returns the preset of this name, or null.
constexpr const recipe_preset* find_recipe(std::string_view name) {
  for (const recipe_preset& p : recipe_presets) {
    if (p.name == name) return &p;
  }
  return nullptr;
}

/// Returns the tile of column-wise outputs, such as those of a transposed operand: rows and columns
/// of the recipe's tile exchanged.
constexpr tile_shape column_tile(const recipe& r) { return {r.tile.cols, r.tile.rows}; }

/// Returns the recipe as options of quantize(). For a delayed recipe the caller must also set
/// options.inverse_scales, the inverse scales.
constexpr quantize_options options_of(const recipe& r) {
  quantize_options o;
  o.tile = r.tile;
  o.scale = r.scale;
  o.eps = r.eps;
  o.upper_bound = r.upper_bound;
  o.nonfinite = r.nonfinite;
  o.overflow = r.overflow;
  o.scale_overflow = r.scale_overflow;
  return o;
}

/// Implementation of quantize() with a recipe.
void quantize_by_recipe(const const_matrix_view& in, const quantize_outputs& outputs,
                        const recipe& rules, const executor& where);

/// Quantizes a matrix by a recipe, with scales computed from the matrix itself.
///
/// This overload is a template so that {.tile = ...} can only mean quantize_options.
///
/// @param in  [rows, cols] in fp32, fp16 or bf16
/// @param outputs  codes, scales and statistics to write
/// @param rules  the recipe
/// @param where  backend, threads and stream
/// @throws invalid_argument if the recipe is delayed, or if the scales are not in its format.
/// @throws as quantize() with options does.
template <std::same_as<recipe> Rules>
void quantize(const const_matrix_view& in, const quantize_outputs& outputs, const Rules& rules,
              const executor& where = {}) {
  quantize_by_recipe(in, outputs, rules, where);
}

}  // namespace samebits
