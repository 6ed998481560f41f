// Tables of usual errors: the library under other settings, and faults that no setting expresses.
#pragma once

#include <vector>

#include "engine/explain/fit.hpp"
#include "engine/kit/function.hpp"
#include "engine/kit/specifications.hpp"

namespace samebits::testkit {

/// Errors of conversions. Results of calls are [codes].
std::vector<candidate> conversion_errors(const conversion_under_test& conversion);

/// The errors that give all results of the calls that were made of a conversion.
explanation explained(const conversion_under_test& conversion, const runner& calls);

/// The same of a kernel that computes a function, whose errors are the library's other rules and
/// functions; with the largest distance.
explanation explained(const function_under_test& tested, const runner& calls);

/// The same of a quantizer: other options, scales at other positions, and errors in one part of the
/// matrix only. If every scale is right, the codes are explained as conversions of the scaled
/// elements too.
explanation explained(const quantizer_under_test& quantizer, const runner& calls);

}  // namespace samebits::testkit
