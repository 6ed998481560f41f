// An outside program: one array conversion through the linked library, one scalar at compile time.
#include <cstdio>
#include <vector>

#include "samebits/samebits.hpp"

int main() {
  const std::vector<float> x = {1000.0f, 0.3f};
  std::vector<samebits::e4m3> y(x.size());
  samebits::convert(samebits::view_of(x), samebits::view_of(y),
                    {.overflow = samebits::overflow::saturate});
  static_assert(samebits::encode<samebits::format_id::bf16>(1.0f) == 0x3F80);
  std::printf("e4m3 %s of %02X, version %s\n", to_string(y[0]).c_str(), y[0].bits(),
              SAMEBITS_VERSION);
  return 0;
}
