// Hashes of arrays: equal for equal codes on every machine and backend.
#pragma once

#include <cstdint>
#include <span>

#include "samebits/backend.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// An array of codes, one after another, of any format.
struct code_array {
  const void* data = nullptr;
  std::int64_t count = 0;
  int bytes = 0;  ///< of a code: 1, 2, 4 or 8, little-endian
  /// The largest code that is no NaN, without its sign: +Inf, or the largest finite number of a
  /// format without Inf. NaNs of all kinds are then alike. 0: integers, and formats with one NaN.
  std::uint64_t largest = 0;
};

/// Writes a hash of each array: the sum modulo 2^64 of a one-to-one function of each code times an
/// odd number of its place. Arrays of equal length that differ in one code have different hashes.
///
/// @param arrays  in `space`, each aligned to the size of its codes; read
/// @param results  as many numbers in `space`; written
/// @param space  where arrays and results lie. In device memory the work is enqueued on
///   where.stream, and the call does not wait.
/// @param where  backend, threads, stream
/// @throws invalid_argument, before anything is written, for a size of codes that is not listed, a
///   negative count, a null or misaligned pointer, or memory that the backend cannot read
/// @throws unsupported if this build or machine lacks the backend
/// @note Thread-safe. The result does not depend on the executor.
///
///   const std::vector<float> x(1000, 1.5f);
///   std::uint64_t h = 0;
///   samebits::hash_codes({{{x.data(), 1000, 4, 0x7F800000}}}, {&h, 1}, memory_space::host);
void hash_codes(std::span<const code_array> arrays, std::span<std::uint64_t> results,
                memory_space space, const executor& where = {});

}  // namespace samebits
