// Array conversion: every element of a view rounded once into another format.
#pragma once

#include "samebits/backend.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// How an array is converted (contract §2 to §4).
struct convert_options {
  rounding round = rounding::nearest_even;
  overflow on_overflow = overflow::ieee;
  nan_policy on_nan = nan_policy::canonical;
  random_stream random = {};  ///< read only by rounding::stochastic
};

/// Converts in [rows, cols] into out [rows, cols], element by element, between any two formats.
///
/// The result depends on the inputs and options alone: not on the executor, the thread count, the
/// strides or the alignment. With stochastic rounding element (r, c) uses the random bits of index
/// random.offset + r * pitch + c (mod 2^64), so a block converted alone, with the offset of its
/// first element and the pitch of the whole, gets the bits it has in the whole.
///
/// in and out may be the same memory when their element sizes and strides are equal; otherwise
/// they must not overlap. Thread-safe; allocates nothing per element.
///
/// Throws invalid_argument, before anything is written, for: unequal shapes, negative sizes or
/// strides, null data of a non-empty view, out elements that share memory, overlap, random.bits
/// outside 1..32, views in different memory or not in the backend's, an unknown backend name;
/// unsupported for a backend this machine lacks, or a conversion that a named backend lacks (none
/// is lacking where the call names no backend); cuda_error if a launch fails.
///
/// Device views are converted on where.stream, on the device they lie on: the call enqueues and
/// returns. Throws invalid_argument, too, for host memory, views on two devices and a stream of
/// another device; environment_error if the backend's self-test fails or, inside the capture of a
/// graph, has not run on that device (samebits/self_test.hpp).
///
///   std::vector<float> x = ...;
///   std::vector<samebits::e4m3> y(x.size());
///   samebits::convert(samebits::view_of(x), samebits::view_of(y),
///                     {.on_overflow = samebits::overflow::saturate});
void convert(const const_matrix_view& in, const matrix_view& out,
             const convert_options& options = {}, const executor& where = {});

}  // namespace samebits
