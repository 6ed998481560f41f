// Checks of a single call.
#include <optional>
#include <utility>

#include "engine/explain/errors.hpp"
#include "engine/kit/conversion.hpp"
#include "engine/kit/function.hpp"
#include "engine/kit/quantize.hpp"

namespace samebits::testkit {
namespace {

template <class Tested>
check_outcome checked(const Tested& tested, const array_function& function, trial in) {
  runner calls(specification_of(tested), function);
  verdict v = calls.run(in);
  if (!v.failed()) return {calls.compared(), std::nullopt};
  explanation why;
  if (v.wrong) why = explained(tested, calls);
  return {calls.compared(), failed_call{std::move(in), std::move(v), std::move(why), {}}};
}

}  // namespace

check_outcome check_one_call(const conversion_under_test& conversion,
                             const array_function& function, trial in) {
  return checked(conversion, function, std::move(in));
}

check_outcome check_one_call(const function_under_test& tested, const array_function& kernel,
                             trial in) {
  return checked(tested, kernel, std::move(in));
}

check_outcome check_one_call(const quantizer_under_test& quantizer, const array_function& function,
                             trial in) {
  return checked(quantizer, function, std::move(in));
}

}  // namespace samebits::testkit
