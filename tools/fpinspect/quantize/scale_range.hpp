// The range of the scales that recipes give to the tiles of a tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "samebits/backend.hpp"
#include "samebits/view.hpp"

namespace fpinspect {

struct scale_range {
  std::string_view recipe;  ///< name of the preset
  std::string_view what;    ///< of the tiles: "1x128 tiles"
  std::uint64_t tiles = 0;
  std::uint64_t zero_tiles = 0;  ///< all their codes are 0; their scales do not count below
  /// floor(log2(s)) of the smallest and the largest finite dequantization scale s.
  std::optional<int> smallest_log2 = {};
  std::optional<int> largest_log2 = {};
};

/// The ranges of TE_BLOCK_2D (128x128), TE_BLOCK_1D (1x128) and MXFP8_TE (1x32), to e4m3.
///
/// @param in  fp32, fp16 or bf16, host memory
std::vector<scale_range> scale_ranges_of(const samebits::const_matrix_view& in,
                                         const samebits::executor& where);

}  // namespace fpinspect
