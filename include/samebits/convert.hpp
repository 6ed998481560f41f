// Converts arrays between formats; every element is rounded once.
#pragma once

#include "samebits/backend.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// Options of convert() (contract §2 to §4).
struct convert_options {
  samebits::rounding rounding = samebits::rounding::nearest_even;
  samebits::overflow overflow = samebits::overflow::ieee;
  nan_policy nan = nan_policy::canonical;
  random_stream random = {};  ///< read only by rounding::stochastic
};

/// Converts every element of `in` into the format of `out`, between any two formats.
///
/// The result depends on the inputs and options alone. The executor, the thread count, the strides
/// and the alignment do not change a bit.
///
/// With stochastic rounding, element (r, c) uses the random bits of index
/// random.offset + r * pitch + c (mod 2^64). A block can be converted alone with the bits it has in
/// the whole matrix. For this set random.offset to the index of the block's first element, and
/// random.pitch to the pitch of the whole matrix.
///
/// @param in  [rows, cols], any format, host or device memory
/// @param out  [rows, cols], any format, in the memory of `in`. `in` and `out` may be the same
///   memory if their element sizes and strides are equal. Otherwise they must not overlap.
/// @param options  rounding, overflow and NaN rules
/// @param where  backend, threads and stream
/// @throws invalid_argument, before anything is written, if:
///   - the shapes differ, or a size or stride is negative;
///   - the data of a non-empty view is null;
///   - elements of `out` share memory, or `in` and `out` overlap;
///   - random.bits is outside 1..32;
///   - the views lie in different memory, on two devices, or not in the backend's memory;
///   - the stream belongs to another device than the views;
///   - the backend's name is unknown.
/// @throws unsupported if this machine lacks the named backend, or if the named backend lacks the
///   conversion. The default backend has every conversion.
/// @throws cuda_error if a kernel launch fails.
/// @throws environment_error for device views if the backend's self-test fails, or if the stream is
///   being captured and the self-test has not run on the device (samebits/self_test.hpp).
/// @note Thread-safe. Allocates nothing per element.
/// @note Device views are converted on where.stream, on the device they lie on. The call enqueues
///   and returns.
///
///   std::vector<float> x = ...;
///   std::vector<samebits::e4m3> y(x.size());
///   samebits::convert(samebits::view_of(x), samebits::view_of(y),
///                     {.overflow = samebits::overflow::saturate});
void convert(const const_matrix_view& in, const matrix_view& out,
             const convert_options& options = {}, const executor& where = {});

}  // namespace samebits
