// Codebooks: codes that are indices of a table of numbers, as bitsandbytes has them.
//
//   codebook    codes  numbers
//   nf4         16     NormalFloat: quantiles of the normal distribution, with 0 and +-1
//   fp4         16     0, 1/192, 1/6, 1/4, 1/3, 1/2, 2/3, 1 and their opposites; not e2m1
//   dynamic8    256    the signed dynamic map of create_dynamic_map()
//
// A block of elements has a scale: its absmax a. r = 1 / a. The code of an element x is that of the
// number nearest to y = x * r; an element is restored as number * a. Every step is one binary32
// operation, rounded to nearest even.
//
//   codebook_steps              cuda (kernels.cu)              cpu (the default and CPU backends)
//   a of a block with NaN       NaN is skipped                 nf4, fp4: NaN; dynamic8: skipped
//   a of zeros in r             0: y is NaN                    1e-38; dynamic8: no code but 0
//   an incomplete last block    as the others                  nf4, fp4: y = x / a, a at least 1e-38
//   ties                        nf4, fp4: toward zero's side   nf4, fp4: the lower number
//                               of the tree; dynamic8: even
//   fp4                         its own thresholds, which      midpoints; a tiny positive number has
//                               differ from midpoints in the   code 8, a tiny negative one code 0
//                               last digits
//   dynamic8                    the nearest number             y is first cut to 65536 bins, so that 0
//                                                              and tiny numbers get other codes
//   code of NaN                 0                              15, fp4: 3
#pragma once

#include <cstdint>

#include "samebits/core/table.hpp"

namespace samebits {

enum class codebook : std::uint8_t { nf4, fp4, dynamic8 };
template <>
inline constexpr auto table_of<codebook> = enum_table<codebook::dynamic8>({"nf4", "fp4",
                                                                           "dynamic8"});

/// Whose steps are followed; the second table above.
enum class codebook_steps : std::uint8_t { cuda, cpu };
template <>
inline constexpr auto table_of<codebook_steps> = enum_table<codebook_steps::cpu>({"cuda", "cpu"});

}  // namespace samebits
