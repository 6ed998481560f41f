// Writes a whole checkpoint, and says what became of its tensors: what `quantize`, `convert` and
// `dequantize` do with -o.
#pragma once

#include "fpinspect/checkpoint/plan.hpp"

namespace fpinspect {

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

/// The number of input files.
std::size_t files_of(const std::vector<shown_tensor>& tensors);

/// Refuses folders of models that are quantized already, as their config.json says.
/// @throws file_error
void require_unquantized(const std::vector<std::string>& files);

/// Writes the tensors, the index, and the files beside them in a folder that is an input. config.json
/// gets, or loses, its `quantization_config`.
/// @param files  as given
void run_checkpoint(const checkpoint_options& options, const std::vector<std::string>& files,
                    const std::vector<planned_tensor>& plan, const checkpoint_writing& how,
                    const session& s);

}  // namespace fpinspect
