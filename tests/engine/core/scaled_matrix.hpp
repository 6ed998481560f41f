// A matrix before its elements are cast to codes, by the definition in numerics/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "numerics/quantize/scale.hpp"
#include "numerics/quantize/tile.hpp"
#include "samebits/quantize.hpp"

namespace samebits::support {

/// Elements and tiles are in row-major order.
struct scaled_matrix {
  std::vector<std::size_t> tile_of;  ///< the number of each element's tile
  std::vector<numerics::tile_amax> amaxes;
  std::vector<numerics::tile_scale> scales;
  std::vector<std::uint32_t> inputs;    ///< binary32
  std::vector<std::uint32_t> elements;  ///< binary32, times the tile's scale
};

/// Steps that a usual error of quantizers replaces; by default none.
struct scaling_variation {
  /// The binary32 element that the amax sees.
  std::uint32_t (*seen)(std::uint32_t element) = nullptr;
  std::optional<format_id> made_for = {};       ///< scales are made for its largest number
  std::optional<scale_rule> element_rule = {};  ///< of the elements alone
  /// s = a / M without the cases of an amax of 0 and of scales below 2^-126; scale_rule::div only.
  bool plain = false;
};

scaled_matrix scale_by_definition(const const_matrix_view& in, format_id to,
                                  const quantize_options& options,
                                  const scaling_variation& variation = {});

}  // namespace samebits::support
