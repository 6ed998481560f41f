// What operations must leave by the definition in numerics/, one element after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/cases/compute.hpp"
#include "engine/cases/convert.hpp"
#include "engine/cases/quantize.hpp"
#include "numerics/quantize/scale.hpp"
#include "numerics/quantize/tile.hpp"

namespace samebits::support {

returned_values convert_by_definition(const array_case& c, const call_site& site);
returned_values compute_by_definition(const array_arithmetic_case& c, const call_site& site);

/// A matrix before its elements are cast to codes. Elements and tiles are in row-major order.
struct scaled_matrix {
  std::vector<std::size_t> tile_of;  ///< the number of each element's tile
  std::vector<numerics::tile_amax> amaxes;
  std::vector<numerics::tile_scale> scales;
  std::vector<std::uint32_t> elements;  ///< binary32, times the tile's scale
};
scaled_matrix scale_by_definition(const const_matrix_view& in, format_id to,
                                  const quantize_options& options);

/// Statistics, whose definition is a sum over a tree, are those of the reference backend, which
/// engine.quantize_oracle compares with the oracle.
returned_values quantize_by_definition(const quantize_case& c, const call_site& site);

}  // namespace samebits::support
