// Which precision for which GPU and task, and what memory it takes: decision guides as data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "samebits/core/format.hpp"
#include "samebits/core/table.hpp"

namespace fpinspect {

enum class gpu_generation : std::uint8_t { volta, turing, ampere, ada, hopper, blackwell, other };
enum class advice_task : std::uint8_t { training, inference };
/// What matters most.
enum class advice_aim : std::uint8_t { stable, fast, small };

struct gpu_names {
  gpu_generation generation;
  std::string_view name;
  std::string_view capability;             ///< CUDA's number of the first GPUs; empty: none
  std::array<std::string_view, 5> others;  ///< other capabilities, and GPUs; empty at the end
};

std::span<const gpu_names> known_gpus();

/// What is asked.
struct advice_question {
  gpu_generation gpu = gpu_generation::other;
  advice_task task = advice_task::training;
  advice_aim aim = advice_aim::stable;
  double parameters = 0;  ///< 0: not known
};

/// Conditions under which a row applies.
struct advice_condition {
  unsigned gpus;         ///< bit i: generation i
  unsigned tasks;        ///< bit i: task i
  unsigned aims;         ///< bit i: aim i
  double from = 0;       ///< least number of parameters
  double below = 1e300;  ///< number of parameters from which the row does not apply
};

/// A choice of the products' format. The first row that applies is taken.
struct precision_choice {
  advice_condition when;
  std::string_view format;  ///< fp32, fp16, bf16 or fp8
  std::string_view recipe;  ///< of FP8 layers; empty for the other formats
  std::string_view scheme;  ///< of `fpinspect memory`
  std::string_view advice;
  std::string_view source;
};

/// Advice beside the format.
struct advice_row {
  advice_condition when;
  std::string_view formats;  ///< the formats that the row is for, separated by spaces
  std::string_view topic;
  std::string_view advice;
  std::string_view source;
};

const precision_choice& choose_precision(const advice_question& question);
/// The rows that apply to the question and the chosen format.
std::vector<advice_row> advice_for(const advice_question& question, const precision_choice& choice);

/// Patterns of layer names with the precision of each, in the order in which they are tried.
using precision_map = std::vector<std::pair<std::string, std::string>>;

/// The map for samebits.torch.convert_linears.
/// @param keep  patterns of layers that stay unquantized besides the usual ones
precision_map precision_map_of(const precision_choice& choice, std::span<const std::string> keep);

// --- Training schemes and the memory that each of their tensors takes ----------------------------

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
  samebits::format_id format;
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

namespace samebits {

template <>
inline constexpr auto table_of<fpinspect::advice_task> =
    enum_table<fpinspect::advice_task>({{fpinspect::advice_task::training, "training"},
                                        {fpinspect::advice_task::inference, "inference"}});
template <>
inline constexpr auto table_of<fpinspect::advice_aim> =
    enum_table<fpinspect::advice_aim>({{fpinspect::advice_aim::stable, "stable"},
                                       {fpinspect::advice_aim::fast, "fast"},
                                       {fpinspect::advice_aim::small, "small"}});

}  // namespace samebits
