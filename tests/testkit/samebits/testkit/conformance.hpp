// The conformance suites, to instantiate over an executor of one's own. Include it in one file of a
// program:
//
//   using namespace samebits::testkit;
//   INSTANTIATE_TEST_SUITE_P(Mine, ConvertSuite, ::testing::Values(convert_target{
//       "mine", true, [](const samebits::const_matrix_view& in, const samebits::matrix_view& out,
//                        const samebits::convert_options& options, int threads) { ... }}),
//       name_of_target);
#pragma once

#include "conformance/convert_suite.hpp"

namespace samebits::testkit {

/// Every pair of formats, rule, size, stride, alignment and random stream, bit for bit.
using support::ConvertSuite;
/// An executor under test: a name, whether this machine has it, and the call on host views.
using support::convert_target;
using support::name_of_target;

}  // namespace samebits::testkit
