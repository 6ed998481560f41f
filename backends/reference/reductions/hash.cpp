// Hashes of arrays on the host: sums modulo 2^64, in any order.
#include <atomic>
#include <cstdint>
#include <cstring>

#include "backends/dispatch/calls/hash.hpp"
#include "backends/reference/reference.hpp"
#include "backends/threads/parts.hpp"
#include "numerics/bits/hash.hpp"

namespace samebits::backends {
namespace {

template <class Code>
std::uint64_t hash_of(const code_array& a, element_range range) {
  std::uint64_t sum = 0;
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    Code code;
    std::memcpy(&code, static_cast<const std::byte*>(a.data) + i * std::int64_t{sizeof code},
                sizeof code);
    sum += numerics::hash_term(numerics::one_nan(code, sizeof code, a.largest),
                               static_cast<std::uint64_t>(i));
  }
  return sum;
}

}  // namespace

void host_hash(const hash_call& call, const executor& where) {
  for (std::size_t i = 0; i < call.arrays.size(); ++i) {
    const code_array& a = call.arrays[i];
    std::atomic<std::uint64_t> sum = 0;
    for_each_part(a.count, where.threads, [&](element_range range) {
      sum += a.bytes == 1   ? hash_of<std::uint8_t>(a, range)
             : a.bytes == 2 ? hash_of<std::uint16_t>(a, range)
             : a.bytes == 4 ? hash_of<std::uint32_t>(a, range)
                            : hash_of<std::uint64_t>(a, range);
    });
    call.results[i] = sum;
  }
}

}  // namespace samebits::backends
