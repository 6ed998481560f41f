// Training schemes and the memory that each of their tensors takes.
#pragma once

#include "fpinspect/common.hpp"

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

/// All known schemes. The first is the one that the others are compared with.
std::span<const memory_scheme> memory_schemes();

/// Bytes a parameter of one tensor, with its scales.
double bytes_of(const stored_as& stored);
/// Bytes a parameter of all tensors of a scheme.
double bytes_of(const memory_scheme& scheme);

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
activation_bytes activations_of(const transformer_shape& shape);

}  // namespace fpinspect
