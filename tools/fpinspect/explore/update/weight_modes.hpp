// How an optimizer keeps weights: the combinations of arrays that optimizer_step() has, by name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "samebits/core/format.hpp"
#include "samebits/core/optimizer.hpp"

namespace fpinspect {

struct weight_mode {
  std::string_view name;
  samebits::stored_format weights;  ///< what the model reads
  samebits::stored_format master = samebits::stored_format::none;
  samebits::low_part low = samebits::low_part::none;
};

/// All modes. The names are those of samebits.torch.optim, where it has the mode.
std::span<const weight_mode> weight_modes();

/// The modes with these names; all modes if there are no names, or "all".
/// @throws usage_error  for another name; the message begins with `option`
std::vector<weight_mode> weight_modes_argument(std::string_view option,
                                               const std::vector<std::string>& names);

/// The format of the codes; `stored` is not none.
samebits::format_id codes_of(samebits::stored_format stored);

/// Bytes of an element, its part of a block's scale included; 0 for none.
double bytes_of(samebits::stored_format stored, int block);
/// Bytes of a weight with master weight and low part.
double bytes_of(const weight_mode& mode, int block);

}  // namespace fpinspect
