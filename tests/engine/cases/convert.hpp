// Conversions of arrays as cases.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/core/layout.hpp"
#include "engine/core/problem.hpp"
#include "samebits/convert.hpp"
#include "samebits/core/format.hpp"

namespace samebits::support {

/// One array conversion: a shape with a layout on both sides, options and threads.
struct array_case {
  format_id from = format_id::fp32;
  format_id to = format_id::fp32;
  array_layout in;
  array_layout out;
  cast_rule rule;
  random_stream random;
  int threads = 1;
  std::uint64_t content = 0;  ///< seed of the codes
  bool in_place = false;      ///< out is the memory of in
};

/// A case of at most about 70000 elements: any number of rows and columns incl. 0, dense, padded,
/// transposed, with repeated input rows and columns (stride 0), unaligned, on 1 to 8 threads; not in
/// place.
array_case draw_array_case(const word_source& next);

/// Source codes for the elements of an array case, in memory order.
std::vector<std::uint64_t> content_of(const array_case& c);

// The buffers of a case: the operand, the result.
/// convert() between any formats, by any rule; of cuda-native what it has.
operation_of<array_case> conversions(std::string_view backend = {});

convert_options options_of(const array_case& c);

void describe(array_case& c, case_fields& fields);

}  // namespace samebits::support
