// Training schemes as data, and the memory that each of their tensors takes.
#pragma once

#include "fpinspect/common.hpp"
#include "samebits/packing.hpp"

namespace fpinspect {

/// The tensors of a training run that have one element for each parameter.
enum class training_part : std::uint8_t {
  weights,      ///< the weights that the forward pass reads
  master,       ///< the copy that the optimizer updates
  gradients,    ///< results of the backward pass
  accumulated,  ///< sums of gradients over micro-batches
  moment_1,     ///< Adam's m
  moment_2,     ///< Adam's v
};

inline constexpr std::size_t training_part_count = 6;

constexpr std::string_view name(training_part part) {
  constexpr std::array<std::string_view, training_part_count> names = {
      "weights", "master", "grad", "grad_sum", "adam_m", "adam_v"};
  return names[static_cast<std::size_t>(part)];
}

/// Elements of one format, with a scale for each tile.
struct stored_as {
  format_id format;
  int copies = 1;          ///< 2 if the tensor is stored quantized along both axes
  int scale_bits = 0;      ///< 0: no scales, or one for the whole tensor
  int scale_elements = 1;  ///< elements of a tile
};

/// Where the tensors of a scheme are documented, and what the source leaves open.
struct memory_scheme {
  std::string_view name;
  std::string_view products;  ///< format of the matrix products' operands
  std::array<std::optional<stored_as>, training_part_count> parts;
  std::string_view source;
  std::string_view note;  ///< empty: nothing to add
};

namespace schemes {

inline constexpr std::optional<stored_as> none = std::nullopt;
inline constexpr stored_as fp32{format_id::fp32};
inline constexpr stored_as fp16{format_id::fp16};
inline constexpr stored_as bf16{format_id::bf16};
/// Sources say fp8. Both FP8 formats take a byte.
inline constexpr stored_as e4m3{format_id::e4m3};
/// FP8 with an fp32 scale for each tile of 128 x 128 elements.
inline constexpr stored_as e4m3_squares{format_id::e4m3, 1, 32, 128 * 128};
/// FP8 with an e8m0 scale for 32 elements, FP4 with an e4m3 scale for 16; quantized along rows and
/// along columns.
inline constexpr stored_as mxfp8{format_id::e4m3, 2, 8, 32};
inline constexpr stored_as nvfp4{format_id::e2m1, 2, 8, 16};
/// NF4, as large as e2m1, with an 8-bit code of the absmax for 64 elements.
inline constexpr stored_as nf4{format_id::e2m1, 1, 8, 64};

inline constexpr std::string_view playbook =
    "Ultra-Scale Playbook (Hugging Face, nanotron, 2025), table of FP8 training methods";
inline constexpr std::string_view ms_amp = "MS-AMP documentation, table of optimization levels";
inline constexpr std::string_view apex = "Apex documentation, apex.amp, opt_levels";

// Order of the parts: weights, master, gradients, accumulated gradients, Adam m, Adam v.
inline constexpr memory_scheme all[] = {
    {"bf16-fp32",
     "bf16",
     {{bf16, fp32, bf16, fp32, fp32, fp32}},
     playbook,
     "bf16 mixed precision with fp32 gradient accumulation; the others are compared with this row"},
    {"bf16-no-grad-sum",
     "bf16",
     {{bf16, fp32, bf16, none, fp32, fp32}},
     playbook,
     "without fp32 gradient accumulation"},
    {"bf16-only",
     "bf16",
     {{bf16, none, bf16, none, bf16, bf16}},
     "torch.optim.AdamW on bf16 parameters: its moments have the parameters' dtype",
     "updates smaller than half the spacing of a weight are lost"},
    {"fp32",
     "fp32",
     {{fp32, none, fp32, none, fp32, fp32}},
     "torch.optim.AdamW on fp32 parameters",
     ""},
    {"apex-o1",
     "fp16",
     {{fp32, none, fp32, none, fp32, fp32}},
     apex,
     "as torch.amp; fp16 copies of the weights live during forward and backward: 2 bytes more"},
    {"apex-o2",
     "fp16",
     {{fp16, fp32, fp16, fp32, fp32, fp32}},
     "Apex, apex/amp/_process_optimizer.py, post_backward_with_master_weights",
     "grad_sum: the fp32 gradients of the master weights"},
    {"transformer-engine",
     "fp8",
     {{fp32, none, fp32, none, fp32, fp32}},
     playbook,
     "FP8 copies of the weights live during forward and backward"},
    {"ms-amp-o1", "fp8", {{fp16, none, e4m3, none, fp32, fp32}}, ms_amp, ""},
    {"ms-amp-o2", "fp8", {{fp16, none, e4m3, none, e4m3, fp16}}, ms_amp, ""},
    {"ms-amp-o3", "fp8", {{e4m3, fp16, e4m3, none, e4m3, fp16}}, ms_amp, ""},
    {"fp8-lm-o3",
     "fp8",
     {{e4m3, fp16, e4m3, fp16, e4m3, fp16}},
     playbook,
     "the playbook adds fp16 gradient sums, which MS-AMP's own table does not have"},
    {"deepseek-v3",
     "fp8",
     {{e4m3_squares, fp32, bf16, fp32, bf16, bf16}},
     playbook,
     "an fp32 scale for 128 x 128 weights, as in the DeepSeek-V3 report, section 3.3"},
    {"nanotron-fp8", "fp8", {{e4m3, bf16, e4m3, fp32, e4m3, e4m3}}, playbook, ""},
    {"mxfp8",
     "mxfp8",
     {{mxfp8, fp32, none, fp32, fp32, fp32}},
     "Recipes for Pre-training LLMs with MXFP8 (arXiv 2506.08027)",
     "FP8 weights along rows and along columns"},
    {"nvfp4",
     "nvfp4",
     {{nvfp4, fp32, none, fp32, fp32, fp32}},
     "Pretraining Large Language Models with NVFP4 (arXiv 2509.25149)",
     "FP4 weights along rows and along columns; the paper keeps some layers in bf16"},
    {"qlora",
     "bf16",
     {{nf4, none, none, none, none, none}},
     "QLoRA (arXiv 2305.14314), sections 3 and 4",
     "NF4 weights with double quantization, shown as e2m1; adapters, which are trained, add to it"},
};

}  // namespace schemes

/// All known schemes. The first is the one that the others are compared with.
inline constexpr std::span<const memory_scheme> memory_schemes = schemes::all;

/// Bytes a parameter of one tensor, with its scales.
inline double bytes_of(const stored_as& stored) {
  const double scale_bits = static_cast<double>(stored.scale_bits) / stored.scale_elements;
  return stored.copies * (code_bits(stored.format) + scale_bits) / 8;
}
/// Bytes a parameter of all tensors of a scheme.
inline double bytes_of(const memory_scheme& scheme) {
  double bytes = 0;
  for (const auto& part : scheme.parts) bytes += part ? bytes_of(*part) : 0;
  return bytes;
}

/// A transformer whose activations are counted.
struct transformer_shape {
  double layers;
  double hidden;
  double heads;
  double sequence;
  double batch;
};

/// Bytes of the activations that the backward pass needs, all of 16 bits except masks of 8 bits.
struct activation_bytes {
  double all;        ///< nothing is recomputed
  double selective;  ///< attention scores are recomputed
  double full;       ///< only the inputs of layers are kept
};

/// Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models
/// (arXiv 2205.05198), equation 2 and section 5, without tensor parallelism.
inline activation_bytes activations_of(const transformer_shape& shape) {
  const double tokens = shape.sequence * shape.batch;
  const double values = shape.layers * tokens * shape.hidden;
  const double scores = 5 * shape.heads * shape.sequence / shape.hidden;
  return {values * (34 + scores), values * 34, values * 2};
}

}  // namespace fpinspect
