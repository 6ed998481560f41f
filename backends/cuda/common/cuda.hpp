// The CUDA backends: launches on a stream, nothing else. No allocation, no synchronisation.
#pragma once

#include <cstdint>
#include <optional>

#include "backends/dispatch/backend.hpp"
#include "backends/self_test/probe_report.hpp"

namespace samebits::cuda {

extern const backends::backend emulated;
extern const backends::backend native;

struct dense_rows;

/// The call as rows of contiguous codes for packs of `pack` elements, if its strides and alignment
/// allow; a matrix without gaps counts as one row. Stochastic: the random index of each row's first
/// element must be a multiple of index_multiple.
std::optional<dense_rows> dense_layout(const backends::convert_call& call, int pack,
                                       int index_multiple);

/// Runs the self-test's probes on the current device, on a stream of its own, and waits for them.
void probes_on_device(backends::probe_report& report);
/// The same for codes that a backend's kernels convert and quantize.
void emulated_codes_on_device(backends::code_report& report);
void native_codes_on_device(backends::code_report& report);

void launch_emulated(const backends::convert_call& call, void* stream);

/// Nearest even, canonical NaN, ieee or saturate: fp32, fp16, bf16 to e4m3, e5m2; fp32 to fp16,
/// bf16.
bool native_has(const backends::convert_call& call);
void launch_native(const backends::convert_call& call, void* stream);

/// The current device's memory.
extern const backends::device_memory memory;

}  // namespace samebits::cuda
