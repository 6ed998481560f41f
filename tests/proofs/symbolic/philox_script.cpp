// Writes what one round of Philox in numerics/ computes as a script in SMT-LIB 2, or the round of numbers by the
// same source text.
//
// usage: philox_script philox round                        the script
//        philox_script philox round C0 C1 C2 C3 KEY0 KEY1  the four words after the round
//
// The script declares c0 .. c3, key0 and key1, words of 32 bits; numbers are hexadecimal. It defines w0 .. w3, the
// words after the round, and `defined`: no shift of the code is undefined in C++.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "numerics/bits/random.hpp"
#include "word.hpp"

namespace {

using namespace samebits;

std::uint32_t number_in(const char* text) {
  return static_cast<std::uint32_t>(std::strtoul(text, nullptr, 16));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 9) {
    std::uint32_t c[] = {number_in(argv[3]), number_in(argv[4]), number_in(argv[5]),
                         number_in(argv[6])};
    numerics::philox_round<std::uint32_t, std::uint64_t>(c, number_in(argv[7]), number_in(argv[8]));
    std::printf("%x %x %x %x\n", c[0], c[1], c[2], c[3]);
    return 0;
  }
  if (argc != 3) return 2;
  using word = proofs::word<std::uint32_t>;
  auto& script = proofs::the_script();
  for (const char* name : {"c0", "c1", "c2", "c3", "key0", "key1"}) script.declare(name, 32);
  word c[] = {word::named("c0"), word::named("c1"), word::named("c2"), word::named("c3")};
  numerics::philox_round<word, proofs::word<std::uint64_t>>(c, word::named("key0"),
                                                            word::named("key1"));
  for (int i = 0; i < 4; ++i) script.name("w" + std::to_string(i), word::sort(), c[i].name);
  std::fputs(script.text().c_str(), stdout);
}
