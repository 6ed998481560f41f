// Tables of usual errors: the library under other settings, and faults that no setting expresses.
#pragma once

#include <vector>

#include "engine/explain/fit.hpp"
#include "engine/kit/function.hpp"
#include "engine/kit/specifications.hpp"

namespace samebits::testkit {

/// Errors of conversions. Results of calls are [codes].
std::vector<candidate> conversion_errors(const conversion_under_test& conversion);

/// Errors of kernels that compute functions: the library's other rules and functions. Results of
/// calls are [codes].
std::vector<candidate> function_errors(const function_under_test& tested);

/// Errors of quantizers: other options, scales at other positions, and errors in one part of the
/// matrix only. Results of calls are [scales, codes].
std::vector<candidate> quantizer_errors(const quantizer_under_test& quantizer);

/// The casts of calls of a quantizer: conversions of the scaled elements from fp32, which the
/// definition in numerics/ gives. Empty if the random bits of calls are not those of one row.
std::vector<seen_call> casts_of(const quantizer_under_test& quantizer,
                                const std::vector<seen_call>& calls);

}  // namespace samebits::testkit
