// What `quantize`, `convert` and `dequantize` do with -o: the plan says what becomes of each tensor of
// a checkpoint (copied, quantized, converted or dequantized), and then all are written.
#pragma once

#include "fpinspect/checkpoint/layout.hpp"
#include "fpinspect/checkpoint/quantized_matrix.hpp"
#include "fpinspect/cli/command.hpp"
#include "fpinspect/verdict/gate/condition.hpp"
#include "fpinspect/verdict/roles.hpp"

namespace fpinspect {

// --- The plan: plan.cpp --------------------------------------------------------------------------

/// What is written of one tensor: the elements as they are, unless one of the members says more.
struct planned_tensor {
  shown_tensor in;                                       ///< codes, if they are dequantized
  std::shared_ptr<const quantization_rules> rules = {};  ///< how it is quantized
  std::optional<format_id> to = {};                      ///< the format it is converted into
  std::optional<quantized_tensor> quantized = {};        ///< dequantized into `to`

  /// The name in the output: that of the file for a tensor without a name.
  [[nodiscard]] std::string name() const { return in.plain_name(); }
  /// The matrix that is quantized, or would be.
  [[nodiscard]] matrix_shape matrix() const { return matrix_of(in.info); }
  /// "TE_BLOCK_2D: e4m3, 128x128, scales fp32", "bf16", "as stored".
  [[nodiscard]] std::string outcome() const;
};

inline bool is_quantized(const std::vector<planned_tensor>& plan) {
  return std::ranges::any_of(plan, [](const planned_tensor& one) { return one.rules != nullptr; });
}

/// IN, OUT and further FILEs of `quantize`, `convert` and `dequantize`.
struct checkpoint_files {
  checkpoint_files(option_list& add, const std::string& in_help, const std::string& out_help);

  /// -o, and the rules of all these arguments.
  /// @param of_one_tensor  options that need an output of one tensor
  std::string& add_whole(option_list& add, std::initializer_list<std::string> of_one_tensor) const;
  /// Whether -o is given; `whole` is its text.
  /// @throws usage_error  for more than IN and OUT without it
  [[nodiscard]] bool is_whole(const std::string& whole) const;
  /// The input files with -o.
  [[nodiscard]] std::vector<std::string> all() const;

  std::string& in;
  std::string& out;
  text_list& more;
};

/// --map, --by-verdict, --keep, --need and --role of `quantize` and `convert`.
struct checkpoint_choices {
  explicit checkpoint_choices(option_list& add);
  /// Whether the verdict or a map says what becomes of each tensor.
  [[nodiscard]] bool of_each() const { return by_verdict || !map.empty(); }

  std::string& map;  ///< a file; empty: none
  bool& by_verdict;
  text_list& keep;
  need& wanted;
  std::vector<role_rule>& roles;
};

/// Opens the files.
/// @throws usage_error  if a tensor has no name that a checkpoint can hold, or two have the same
std::vector<shown_tensor> checkpoint_tensors(const std::vector<std::string>& files);

/// @param rules  of --recipe or of its options; nothing with --map or --by-verdict
/// @param rounding  of codes, as far as recipes leave it open
/// @throws usage_error  if nothing is quantized, or the layout cannot hold a tensor
std::vector<planned_tensor> plan_quantize(const checkpoint_choices& choices,
                                          const std::vector<shown_tensor>& tensors,
                                          const std::optional<quantization_rules>& rules,
                                          layout names, const convert_options& rounding);

/// @param to  of all tensors; nothing with --map or --by-verdict
std::vector<planned_tensor> plan_convert(const checkpoint_choices& choices,
                                         const std::vector<shown_tensor>& tensors,
                                         std::optional<format_id> to);

/// @throws file_error  if no tensor is quantized
std::vector<planned_tensor> plan_dequantize(const std::vector<shown_tensor>& tensors, format_id to);

/// The rules of a preset.
/// @param to  nothing: the preset's own format of codes
/// @param rounding  of codes, which recipes leave open
/// @throws usage_error  if its scales come from earlier steps; the message names `option`
quantization_rules rules_of(std::string_view option, const recipe_preset& preset,
                            std::optional<format_id> to, const convert_options& rounding);

// --- The checkpoint: write.cpp, checkpoint.cpp ---------------------------------------------------

/// What all tensors of a checkpoint share.
struct checkpoint_writing {
  layout names = layout::compressed_tensors;
  /// Of conversions. With stochastic rounding, the tensors take the random bits of one long array.
  convert_options rule = {};
  executor where = {};
};

/// What was written.
struct written_checkpoint {
  std::map<std::string, std::string> file_of = {};  ///< by the tensors' names
  std::vector<std::string> files = {};
  std::uint64_t bytes = 0;  ///< of all elements
};

/// Writes the tensors of each input file to a file of the same name, and an index if there are
/// several. Memory holds a few bands and the scales of one tensor, not whole tensors.
/// @throws file_error
written_checkpoint write_tensors(const std::vector<planned_tensor>& plan,
                                 const checkpoint_writing& how, class output_checkpoint& out);

/// Refuses folders of models that are quantized already, as their config.json says.
/// @throws file_error
void require_unquantized(const std::vector<std::string>& files);

/// Writes the tensors, the index, and the files beside them in a folder that is an input. config.json
/// gets, or loses, its `quantization_config`.
/// @param output  of -o
/// @param files  as given
void run_checkpoint(const std::string& output, const std::vector<std::string>& files,
                    const std::vector<planned_tensor>& plan, const checkpoint_writing& how,
                    const session& s);

}  // namespace fpinspect
