// Checks of a single call.
#include <optional>
#include <utility>

#include "engine/explain/errors.hpp"
#include "engine/kit/conversion.hpp"
#include "engine/kit/domain_codes.hpp"
#include "engine/kit/function.hpp"
#include "engine/kit/quantize.hpp"

namespace samebits::testkit {

template <class Tested>
check_outcome check_one_call(const Tested& tested, const array_function& function, trial in) {
  const specification what = specification_of(tested);
  // Throws for a domain without codes, as the checks of many calls do.
  const domain_codes domain(what.domain, what.from, what.results.back().format, in.codes);
  runner calls(what, function);
  verdict v = calls.run(in);
  if (!v.failed()) return {calls.compared(), std::nullopt};
  explanation why;
  if (v.wrong) why = explained(tested, calls);
  return {calls.compared(), failed_call{std::move(in), std::move(v), std::move(why), {}}};
}

template check_outcome check_one_call(const conversion_under_test&, const array_function&, trial);
template check_outcome check_one_call(const function_under_test&, const array_function&, trial);
template check_outcome check_one_call(const quantizer_under_test&, const array_function&, trial);

}  // namespace samebits::testkit
