// A shared library to measure the host time of a small convert() on device memory. Python calls the
// library beside PyTorch's copy_ in one process (torch_bench.py --host-time).
#include <cstdint>

#include "samebits/convert.hpp"

/// Enqueues a conversion of `count` elements from fp32 to bf16 in device memory. Python calls this
/// function and copy_ in the same way.
extern "C" [[gnu::visibility("default")]] void samebits_convert(const void* in, void* out,
                                                                std::int64_t count, void* stream) {
  using namespace samebits;
  convert(on_device(view_of_codes(format_id::fp32, in, 1, count)),
          on_device(view_of_codes(format_id::bf16, out, 1, count)), {}, on_stream(stream));
}

/// Enqueues the conversion `times` times, which gives the host time of a call without Python's
/// overhead.
extern "C" [[gnu::visibility("default")]] void samebits_convert_many(const void* in, void* out,
                                                                     std::int64_t count,
                                                                     void* stream, int times) {
  for (int i = 0; i < times; ++i) samebits_convert(in, out, count, stream);
}
