// Rotary tables through the C interface.
#include "samebits/rotary.hpp"

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "backends/c_api/arguments/options.hpp"
#include "samebits/c/rotary.h"

namespace api = samebits::c_api;

namespace {

samebits::rotary_options options_of(const samebits_rotary_options* options) {
  const samebits_rotary_options o = api::read(options, "options");
  api::check_array(o.frequencies, o.frequency_count, "options.frequencies");
  return {.base = o.base,
          .frequencies = {o.frequencies, o.frequency_count},
          .angle = api::enumerator<samebits::rotary_angle>(o.angle, "angle")};
}

}  // namespace

samebits_status samebits_rotary_table(const int64_t* positions, size_t position_count,
                                      const samebits_view* cos, const samebits_view* sin,
                                      const samebits_rotary_options* options,
                                      const samebits_executor* where) {
  return api::guarded([&] {
    api::check_array(positions, position_count, "positions");
    samebits::rotary_table({positions, position_count}, api::view(cos, "cos"),
                           api::view(sin, "sin"), options_of(options), api::where(where));
  });
}
