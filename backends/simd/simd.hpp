// The SIMD backends: AVX2 and AVX-512, chosen at run time.
#pragma once

#include "backends/backend.hpp"
#include "backends/probe_report.hpp"

namespace samebits::backends {

extern const backend avx2;
extern const backend avx512;

// Each compiled in a translation unit of its own, with its instruction set's flags; neither format
// may be fp64.
void avx2_convert(const convert_call& call, element_range range);
void avx512_convert(const convert_call& call, element_range range);

void avx2_probes(probe_report& report);
void avx512_probes(probe_report& report);

}  // namespace samebits::backends
