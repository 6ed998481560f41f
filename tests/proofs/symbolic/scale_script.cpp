// Writes what the scale rules of numerics/ compute as a script in SMT-LIB 2, or the scale of one amax by the same
// source text.
//
// usage: scale_script RULE FORMAT NONFINITE EPS UPPER         the script
//        scale_script RULE FORMAT NONFINITE EPS UPPER AMAX    scale and factor
//
// EPS, UPPER and AMAX are binary32 bits in hexadecimal. The script declares amax and the functions quotient and
// product of binary32 numbers, of which it assumes nothing. It defines scale, factor and `defined`: no shift of
// the code is undefined in C++.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "numerics/quantize/scale.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/scaling.hpp"
#include "samebits/core/table.hpp"
#include "word.hpp"

namespace {

using namespace samebits;
using word = proofs::word<std::uint32_t>;

/// An Arithmetic policy (numerics/arithmetic/by_definition.hpp) of which nothing is known.
struct any_arithmetic {
  static word quotient(const word& a, const word& b) {
    return word::of("(quotient " + a.name + " " + b.name + ")");
  }
  static word product(const word& a, const word& b) {
    return word::of("(product " + a.name + " " + b.name + ")");
  }
};

std::uint32_t bits_in(const char* text) {
  return static_cast<std::uint32_t>(std::strtoul(text, nullptr, 16));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6 && argc != 7) return 2;
  const auto rule = find_enumerator<scale_rule>(argv[1]);
  const auto format = find_format(argv[2]);
  const auto policy = find_enumerator<nonfinite>(argv[3]);
  if (!rule || !format || !policy) return 2;
  const numerics::scale_settings settings = {.rule = *rule,
                                             .nonfinite = *policy,
                                             .eps = bits_in(argv[4]),
                                             .upper_bound = bits_in(argv[5])};
  if (argc == 7) {
    const auto s = numerics::scales_of<numerics::by_definition>(spec_of(*format), settings,
                                                                bits_in(argv[6]));
    std::printf("%x %x\n", s.dequantization_scale, s.factor);
    return 0;
  }
  auto& script = proofs::the_script();
  script.declare("amax", 32);
  for (const char* function : {"quotient", "product"}) script.declare_function(function, 32);
  const auto s =
      numerics::scales_of<any_arithmetic>(spec_of(*format), settings, word::named("amax"));
  script.name("scale", word::sort(), s.dequantization_scale.name);
  script.name("factor", word::sort(), s.factor.name);
  std::fputs(script.text().c_str(), stdout);
}
