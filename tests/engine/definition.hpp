// What operations must leave by the definition in numerics/, one element after another.
#pragma once

#include "engine/cases/compute.hpp"
#include "engine/cases/convert.hpp"
#include "engine/cases/quantize.hpp"
#include "engine/core/scaled_matrix.hpp"

namespace samebits::support {

returned_values convert_by_definition(const array_case& c, const call_site& site);
returned_values compute_by_definition(const array_arithmetic_case& c, const call_site& site);

/// Statistics, whose definition is a sum over a tree, are those of the reference backend, which
/// engine.quantize_oracle compares with the oracle.
returned_values quantize_by_definition(const quantize_case& c, const call_site& site);

}  // namespace samebits::support
