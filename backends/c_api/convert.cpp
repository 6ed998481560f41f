// Conversion of arrays through the C interface.
#include "samebits/convert.hpp"

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "samebits/c/convert.h"

namespace api = samebits::c_api;

samebits_status samebits_convert(const samebits_view* in, const samebits_view* out,
                                 const samebits_convert_options* options,
                                 const samebits_executor* where) {
  return api::guarded([&] {
    samebits::convert(api::view(in, "in"), api::view(out, "out"), api::options(options),
                      api::where(where));
  });
}
