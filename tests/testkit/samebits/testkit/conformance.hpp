// Conformance suites: tests to instantiate for a user's own executor. Include this header in one
// file of a program:
//
//   using namespace samebits::testkit;
//   INSTANTIATE_TEST_SUITE_P(Mine, ConvertSuite, ::testing::Values(convert_target{
//       "mine", true, [](const samebits::const_matrix_view& in, const samebits::matrix_view& out,
//                        const samebits::convert_options& options, int threads) { ... }}),
//       name_of_target);
#pragma once

#include "engine/suites/convert_suite.hpp"

namespace samebits::testkit {

/// Test suite of conversions: every pair of formats, rule, size, stride, alignment and random
/// stream, bit for bit.
using support::ConvertSuite;
/// An executor under test: its name, whether this machine supports it, and a call on host views.
using support::convert_target;
/// Returns the name of a target, for INSTANTIATE_TEST_SUITE_P.
using support::name_of_target;

}  // namespace samebits::testkit
