// Hashes of arrays: checks arguments and chooses a backend.
#include "samebits/hash.hpp"

#include <string>

#include "backends/api/view_checks.hpp"
#include "backends/dispatch/calls/hash.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "samebits/error.hpp"

namespace samebits {
namespace {

void check_array(const code_array& a, std::size_t number) {
  const auto refuse = [&](const char* why) {
    throw invalid_argument("arrays[" + std::to_string(number) + "]: " + why);
  };
  if (a.bytes != 1 && a.bytes != 2 && a.bytes != 4 && a.bytes != 8) {
    refuse("codes must have 1, 2, 4 or 8 bytes");
  }
  if (a.count < 0) refuse("count is negative");
  if (a.count > 0 && a.data == nullptr) refuse("data is null");
  if (reinterpret_cast<std::uintptr_t>(a.data) % static_cast<unsigned>(a.bytes) != 0) {
    refuse("data is not aligned to its codes");
  }
}

}  // namespace

void hash_codes(std::span<const code_array> arrays, std::span<std::uint64_t> results,
                memory_space space, const executor& where) {
  if (arrays.size() != results.size()) {
    throw invalid_argument("results: must be as many as arrays");
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) check_array(arrays[i], i);
  if (arrays.empty()) return;
  if (results.data() == nullptr ||
      reinterpret_cast<std::uintptr_t>(results.data()) % alignof(std::uint64_t) != 0) {
    throw invalid_argument("results: null, or not aligned to 8 bytes");
  }
  backends::device_finder devices(space);
  devices.add(results.data(), "results");
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    devices.add(arrays[i].count == 0 ? nullptr : arrays[i].data,
                [&] { return "arrays[" + std::to_string(i) + "]"; });
  }
  const backends::device_scope on(space, devices.device(), where.stream);
  const backends::hash_call call{arrays, results.data()};
  backends::backend_for(
      where, space, [&](const backends::backend& b) { return b.hash.has(call); }, "has no hashes")
      .hash.run(call, where);
}

}  // namespace samebits
