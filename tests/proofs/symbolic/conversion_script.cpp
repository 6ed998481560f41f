// Writes what the conversion of numerics/ computes as a script in SMT-LIB 2, or converts a code with the same
// source text.
//
// usage: conversion_script FROM TO ROUNDING              the script
//        conversion_script FROM TO ROUNDING CODE DITHER  code, inexact and overflow for each policy
//
// FROM is fp32 or fp64. The script declares x, a code of FROM, and dither, the random bits at the top of a word
// as wide as FROM; both are hexadecimal on the command line. It defines for the policy p = 0 .. 5 (overflow ieee, saturate,
// saturate_finite, each with NaN canonical, then preserve_sign) code_p, inexact_p and overflow_p, and
// `defined`: no shift of the code is undefined in C++.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "numerics/bits/convert.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/core/table.hpp"
#include "word.hpp"

namespace {

using namespace samebits;

constexpr overflow overflows[] = {overflow::ieee, overflow::saturate, overflow::saturate_finite};
constexpr nan_policy nans[] = {nan_policy::canonical, nan_policy::preserve_sign};

void for_each_policy(const format_spec& from, const format_spec& to, rounding mode, const auto& x,
                     const auto& dither, const auto& use) {
  int policy = 0;
  for (const auto on_overflow : overflows) {
    for (const auto nan : nans) {
      const cast_rule rule = {.rounding = mode, .overflow = on_overflow, .nan = nan};
      use(policy++, numerics::convert(from, to, rule, x, dither));
    }
  }
}

template <class Element>
void write_script(const format_spec& from, const format_spec& to, rounding mode) {
  using word = proofs::word<Element>;
  auto& script = proofs::the_script();
  script.declare("x", word::width);
  script.declare("dither", word::width);
  for_each_policy(
      from, to, mode, word::named("x"), word::named("dither"), [&](int policy, const auto& r) {
        const auto number = std::to_string(policy);
        script.name("code_" + number, word::sort(), r.code.name);
        script.name("inexact_" + number, "Bool", r.inexact.name);
        script.name("overflow_" + number, "Bool", r.overflow.name);
      });
  std::fputs(script.text().c_str(), stdout);
}

template <class Element>
void convert_code(const format_spec& from, const format_spec& to, rounding mode, Element x,
                  Element dither) {
  for_each_policy(from, to, mode, x, dither, [](int policy, const auto& r) {
    std::printf("%d %llx %d %d\n", policy, static_cast<unsigned long long>(r.code), r.inexact,
                r.overflow);
  });
}

template <class Element>
int run(const format_spec& from, const format_spec& to, rounding mode, char** codes) {
  if (codes == nullptr) {
    write_script<Element>(from, to, mode);
  } else {
    convert_code(from, to, mode, static_cast<Element>(std::strtoull(codes[0], nullptr, 16)),
                 static_cast<Element>(std::strtoull(codes[1], nullptr, 16)));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 6) return 2;
  const auto from = find_format(argv[1]);
  const auto to = find_format(argv[2]);
  const auto mode = find_enumerator<rounding>(argv[3]);
  if (!from || !to || !mode) return 2;
  char** const codes = argc == 6 ? argv + 4 : nullptr;
  if (*from == format_id::fp64) {
    return run<std::uint64_t>(spec_of(*from), spec_of(*to), *mode, codes);
  }
  return *from == format_id::fp32
             ? run<std::uint32_t>(spec_of(*from), spec_of(*to), *mode, codes)
             : 2;
}
