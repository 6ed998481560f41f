// The device self-test compiled with wrong flags: on a GPU each must be seen, right ones pass.
//
// Every variant is backends/cuda/self_test/self_test.cu itself, compiled with its flags and its
// function under another name (CMakeLists.txt); no macro names these flags, so nothing refuses them
// earlier.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <ostream>
#include <set>
#include <string>

#include "backends/self_test/probe_report.hpp"

namespace samebits::cuda {

void probes_right(backends::probe_report&);
void probes_fmad(backends::probe_report&);
void probes_ftz(backends::probe_report&);
void probes_prec_div(backends::probe_report&);
void probes_prec_sqrt(backends::probe_report&);
void probes_use_fast_math(backends::probe_report&);

namespace {

using names = std::set<std::string>;

struct variant {
  const char* flags;
  void (*run)(backends::probe_report& report);
  names must_fail;
};

void PrintTo(const variant& v, std::ostream* out) { *out << v.flags; }

class DeviceSelfTestFlags : public ::testing::TestWithParam<variant> {};

TEST_P(DeviceSelfTestFlags, AreSeen) {
  const variant& v = GetParam();
  backends::probe_report report{};
  v.run(report);
  names failed;
  std::string list;
  for (int i = 0; i < backends::probe_count; ++i) {
    if (report.of[i].bits == 0) continue;
    failed.insert(backends::probe_names[i]);
    list += std::string(" ") + backends::probe_names[i];
  }
  std::printf("%s:%s\n", v.flags, failed.empty() ? " nothing seen" : list.c_str());
  if (v.must_fail.empty()) {
    EXPECT_EQ(failed, names{});
  } else {
    EXPECT_TRUE(std::ranges::includes(failed, v.must_fail)) << "seen:" << list;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Nvcc, DeviceSelfTestFlags,
    ::testing::Values(
        variant{"--fmad=false", probes_right, {}},
        variant{"--fmad=true", probes_fmad, {"contraction"}},
        variant{"--fmad=false -ftz=true", probes_ftz, {"flush_to_zero", "denormals_are_zero"}},
        variant{"--fmad=false -prec-div=false", probes_prec_div, {"division", "reciprocal"}},
        variant{"--fmad=false -prec-sqrt=false", probes_prec_sqrt, {"square_root"}},
        variant{"-use_fast_math",
                probes_use_fast_math,
                {"contraction", "flush_to_zero", "denormals_are_zero", "division", "reciprocal",
                 "square_root"}}));

}  // namespace
}  // namespace samebits::cuda
