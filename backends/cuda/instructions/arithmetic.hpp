// The Arithmetic policies of kernels, as a choice at run time.
#pragma once

#include <cstdint>

namespace samebits::cuda {

/// What computes sums and products: integers (numerics::by_definition) or the GPU's instructions
/// (hardware). The bits are equal. With `hardware`, conversions use instructions where proved equal.
enum class arithmetic : std::uint8_t { by_definition, hardware };

}  // namespace samebits::cuda
