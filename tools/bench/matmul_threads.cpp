// matmul_threads: what a second thread is worth to a matrix product.
//
//   matmul_threads [N [ROUNDS]]
//
// N^3 e4m3 by hopper-wgmma with a promotion every 128, one thread and two by turns in one process.
// Prints the least time of each and their ratio: what else runs can only make a product slower.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "samebits/samebits.hpp"

namespace {

using namespace samebits;

/// Codes of both signs in ten binades, no NaN.
std::vector<std::byte> draw(std::int64_t n, std::uint64_t stream) {
  std::vector<std::byte> codes(static_cast<std::size_t>(n * n));
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::uint32_t word = random_word(stream, 0, i);
    codes[i] = static_cast<std::byte>(word % 0x50 | (word >> 31 << 7));
  }
  return codes;
}

double milliseconds(const const_matrix_view& a, const const_matrix_view& b, const matrix_view& d,
                    int threads) {
  const auto sum = accumulator::tensor_core(tensor_unit::hopper_wgmma, 128);
  const auto start = std::chrono::steady_clock::now();
  matmul(a, b, d, sum, {}, {{}, threads});
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t n = argc > 1 ? std::atoll(argv[1]) : 512;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 300;
  if (n <= 0 || rounds <= 0) {
    std::fprintf(stderr, "usage: matmul_threads [N [ROUNDS]]\n");
    return 2;
  }
  const std::vector<std::byte> a = draw(n, 1);
  const std::vector<std::byte> b = draw(n, 2);
  std::vector<float> d(static_cast<std::size_t>(n * n));
  const const_matrix_view x = view_of_codes(format_id::e4m3, a.data(), n, n);
  const const_matrix_view y = transposed(view_of_codes(format_id::e4m3, b.data(), n, n));
  const matrix_view z = view_of(d.data(), n, n);
  double one = milliseconds(x, y, z, 1);
  double two = milliseconds(x, y, z, 2);
  for (int r = 1; r < rounds; ++r) {
    one = std::min(one, milliseconds(x, y, z, 1));
    two = std::min(two, milliseconds(x, y, z, 2));
  }
  const double products = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  std::printf("%lld^3: one thread %.2f ms, %.1f GMAC/s; two %.2f ms, %.1f GMAC/s; ratio %.2f\n",
              static_cast<long long>(n), one, products / one / 1e6, two, products / two / 1e6,
              one / two);
}
