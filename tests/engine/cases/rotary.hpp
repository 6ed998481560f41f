// Rotary tables as cases.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "engine/core/problem.hpp"
#include "samebits/rotary.hpp"

namespace samebits::support {

struct rotary_case {
  std::vector<std::int64_t> positions = {};
  std::vector<double> frequencies = {};  ///< empty: by the base
  rotary_options options = {};
  format_id format = format_id::fp32;
  array_layout cos = {}, sin = {};
  int threads = 1;
};
std::ostream& operator<<(std::ostream& out, const rotary_case& c);

/// rotary_table() of any positions, frequencies and layouts. The buffers are cos and sin.
operation_of<rotary_case> rotary_tables();
/// The call with other positions into other views.
void fill_table(const rotary_case& c, std::span<const std::int64_t> positions,
                const matrix_view& cos, const matrix_view& sin, const executor& where);

}  // namespace samebits::support
