// The views of `tensor` besides the verdict: --quick, --stats, --recipes, and one tensor in detail.
#pragma once

#include "fpinspect/cli/command.hpp"
#include "fpinspect/tensors/source/selection.hpp"
#include "fpinspect/verdict/gate/gate.hpp"
#include "fpinspect/verdict/verdict.hpp"

namespace fpinspect {

/// The members name, from, shape and count.
json_object tensor_json(const shown_tensor& tensor);

/// "TITLE  TYPE [64, 576]", the title painted.
inline std::string heading_text(const shown_tensor& tensor, std::string_view type,
                                const terminal& term) {
  return cat(term.painted(paint::heading, tensor.title()), "  ", type, type.empty() ? "" : " ",
             shape_text(tensor.info.shape));
}

inline std::string number_text(const std::optional<double>& value) {
  return value ? general(*value, 6) : "-";
}

/// The members zeros to min_nonzero.
inline json_object extremes_json(const cast_statistics& s) {
  return {{"zeros", s.zeros},
          {"nan", s.nan},
          {"inf", s.inf},
          {"min", s.min},
          {"max", s.max},
          {"amax", s.amax},
          {"min_nonzero", s.min_nonzero}};
}

/// The matrix on which recipes are judged: that of a weight if the name says so.
inline matrix_shape judged_matrix_of(const shown_tensor& tensor) {
  const std::string name = tensor.plain_name();
  return judged_matrix_of(tensor.info, is_weight_shaped(name, guessed_role(name)));
}

/// Writes a line for each tensor, or JSON.
/// @param names  of the tensors in text
/// @param conditions  on `nan` and `inf`
void write_quick_statistics(const std::vector<shown_tensor>& tensors,
                            std::span<const std::string> names, gate& conditions,
                            const executor& where, const session& s);

/// Writes moments, norms, percentiles, the amax of rows and columns, and the range of the scales
/// that tiled recipes give. Scales are for matrices of fp32, fp16, bf16 and integers of up to 16
/// bits.
void write_tensor_statistics(std::span<const shown_tensor> tensors, const executor& where,
                             const session& s);

/// Quantizes each tensor to e4m3 by each preset, and writes SQNR, underflow and saturation. Scales
/// are computed from the tensor itself. Notes the figures for the conditions; tensors that cannot be
/// quantized fail.
/// @param names  of the tensors in text
void write_tensor_recipes(std::span<const shown_tensor> tensors, std::span<const std::string> names,
                          gate& conditions, const executor& where, const session& s);

/// The members of a tensor in the document of the verdict. stats.casts must contain the formats.
json_object details_json(const shown_tensor& tensor, const cast_statistics& stats,
                         std::span<const format_id> formats);

/// A tensor with what its detailed view shows.
struct detailed_tensor {
  const shown_tensor& tensor;
  const tensor_evidence& evidence;  ///< stats.casts must contain the formats
};

/// Writes what formats do to each tensor, and its exponents as a chart; and what the words mean.
///
/// @param formats  the rows of the tables
/// @param scale_log2  the effects in the statistics are those on the elements times 2^this
void write_details(std::span<const detailed_tensor> tensors, std::span<const format_id> formats,
                   std::optional<int> scale_log2, const session& s);

}  // namespace fpinspect
