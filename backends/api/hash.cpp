// Hashes of arrays: checks arguments and chooses a backend.
#include "samebits/hash.hpp"

#include <string>

#include "backends/api/run_call.hpp"
#include "backends/dispatch/calls/hash.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/dispatch/refuse.hpp"

namespace samebits {
namespace {

void check_array(const code_array& a, std::size_t number) {
  const auto check = [&](bool ok, const char* what) {
    require(ok, "arrays[", number, "]: ", what);
  };
  check(a.bytes == 1 || a.bytes == 2 || a.bytes == 4 || a.bytes == 8,
        "codes must have 1, 2, 4 or 8 bytes");
  check(a.count >= 0, "count is negative");
  check(a.count == 0 || a.data != nullptr, "data is null");
  check(reinterpret_cast<std::uintptr_t>(a.data) % static_cast<unsigned>(a.bytes) == 0,
        "data is not aligned to its codes");
}

}  // namespace

void hash_codes(std::span<const code_array> arrays, std::span<std::uint64_t> results,
                memory_space space, const executor& where) {
  refuse_if(arrays.size() != results.size(), "results: must be as many as arrays");
  for (std::size_t i = 0; i < arrays.size(); ++i) check_array(arrays[i], i);
  if (arrays.empty()) return;
  refuse_if(results.data() == nullptr ||
                reinterpret_cast<std::uintptr_t>(results.data()) % alignof(std::uint64_t) != 0,
            "results: null, or not aligned to 8 bytes");
  backends::device_finder devices(space);
  devices.add(results.data(), "results");
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    devices.add(arrays[i].count == 0 ? nullptr : arrays[i].data,
                [&] { return "arrays[" + std::to_string(i) + "]"; });
  }
  const backends::device_scope on(space, devices.device(), where.stream);
  const backends::hash_call call{arrays, results.data()};
  backends::backend_for(&backends::backend::hash, call, space, where, "has no hashes")
      .hash.run(call, where);
}

}  // namespace samebits
