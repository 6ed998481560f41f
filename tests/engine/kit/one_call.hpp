// A check of a single call.
#pragma once

#include <optional>
#include <utility>

#include "engine/explain/errors.hpp"
#include "engine/kit/failed_call.hpp"

namespace samebits::testkit {

/// Makes one call of a conversion, function or quantizer under test, on exactly this input.
template <class Tested>
check_outcome check_one_call(const Tested& tested, const array_function& function, trial in) {
  runner calls(specification_of(tested), function);
  verdict v = calls.run(in);
  if (!v.failed()) return {calls.compared(), std::nullopt};
  explanation why;
  if (v.wrong) why = explained(tested, calls);
  return {calls.compared(), failed_call{std::move(in), std::move(v), std::move(why), {}}};
}

}  // namespace samebits::testkit
