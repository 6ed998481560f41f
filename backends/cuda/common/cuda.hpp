// The entry points of the CUDA backends. Conversions launch kernels on a stream; they neither
// allocate nor synchronize.
#pragma once

#include "backends/dispatch/backend.hpp"
#include "backends/self_test/probe_report.hpp"

namespace samebits::cuda {

/// cuda-emulated and cuda-native.
extern const backends::backend emulated;
extern const backends::backend native;

/// Runs the self-test's probes on the current device, on a stream of their own, and waits.
void probes_on_device(backends::probe_report& report);
/// Runs the self-test of the kernels that convert and quantize, on the current device, on a stream
/// of their own, and waits.
void emulated_codes_on_device(backends::code_report& report);
void native_codes_on_device(backends::code_report& report);

/// Enqueues a conversion by the definition in integers.
void launch_emulated(const backends::convert_call& call, void* stream);

/// Whether cuda-native supports a conversion: rounding to nearest even, canonical NaN, ieee or
/// saturate; fp32, fp16 and bf16 to e4m3 and e5m2; fp32 to fp16 and bf16.
bool native_supports(const backends::convert_call& call);
/// Enqueues a conversion that native_supports() supports.
void launch_native(const backends::convert_call& call, void* stream);

/// Memory of the current device: synchronous calls on the default stream.
extern const backends::device_memory memory;

}  // namespace samebits::cuda
