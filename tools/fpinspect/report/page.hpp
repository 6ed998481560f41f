// The page of `report`: one HTML file without anything from outside.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "fpinspect/report/pictures.hpp"
#include "fpinspect/scaler/traces.hpp"
#include "fpinspect/tensors/element_statistics.hpp"
#include "fpinspect/verdict/evidence.hpp"
#include "fpinspect/verdict/verdict.hpp"

namespace fpinspect {

/// Everything that the page shows.
struct report_input {
  std::string heading;  ///< the files
  std::span<const tensor_evidence> tensors;
  std::span<const samebits::cast_statistics> stats;  ///< of the tensors
  const verdict* result = nullptr;
  std::map<std::size_t, tile_map> maps;          ///< of some tensors, by index
  std::span<const scaler_row> scale_trace = {};  ///< of the training run; may be empty
};

/// The tensors with a section of their own, in the order of the verdict: at most 200, so that the
/// page stays small.
std::vector<std::size_t> detailed_tensors(const report_input& in);

/// Elements of all tensors by floor(log2(|x|)).
std::map<int, std::uint64_t> all_exponents(std::span<const samebits::cast_statistics> stats);

std::string report_page(const report_input& in);

}  // namespace fpinspect
