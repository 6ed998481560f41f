// arithmetic_bench: scalar operations with flags on one thread, beside Berkeley SoftFloat's where
// the build has it (SAMEBITS_SOFTFLOAT).
//
//   arithmetic_bench [ROUNDS]
//
// Both run over the same arrays of 4096 operands that stay in the cache, in turns; of ROUNDS (201)
// turns the fastest is printed, in nanoseconds per operation. "bits": uniform bit patterns, every
// class of numbers and every exponent; "normal": normally distributed values. sqrt takes their
// magnitudes.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "samebits/arithmetic.hpp"
#include "peers/softfloat_peer.hpp"

namespace {

using namespace samebits;
using samebits::bench::arithmetic_loop;
using samebits::bench::operand_arrays;

constexpr std::size_t count = 4096;
constexpr int passes = 10;  // over the arrays, per turn

template <class T>
T value_of(std::uint32_t code) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(code);
  } else {
    return T::from_bits(static_cast<typename T::storage>(code));
  }
}

template <class T>
std::uint32_t code_of(T v) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<std::uint32_t>(v);
  } else {
    return v.bits();
  }
}

volatile unsigned raised_so_far;  // as SoftFloat's global: flags are not optimised away

template <class T, operation Op>
void loop(const operand_arrays& x) {
  flags raised = flags::none;
  for (std::size_t i = 0; i < x.count; ++i) {
    const T a = value_of<T>(x.a[i]);
    const T b = value_of<T>(x.b[i]);
    result<T> r{};
    if constexpr (Op == operation::add) r = add<T>(a, b);
    if constexpr (Op == operation::mul) r = mul<T>(a, b);
    if constexpr (Op == operation::div) r = div<T>(a, b);
    if constexpr (Op == operation::sqrt) r = sqrt<T>(a);
    if constexpr (Op == operation::rem) r = rem<T>(a, b);
    if constexpr (Op == operation::rint) r = rint<T>(a);
    if constexpr (Op == operation::fma) r = fma<T>(a, b, value_of<T>(x.c[i]));
    x.out[i] = code_of(r.value);
    raised |= r.raised;
  }
  raised_so_far = raised_so_far | static_cast<unsigned>(raised);
}

double seconds_of(arithmetic_loop run, const operand_arrays& x) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < passes; ++i) run(x);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Of the fastest turn: whatever else runs on the machine only adds time.
double nanoseconds(const std::vector<double>& seconds) {
  return *std::min_element(seconds.begin(), seconds.end()) / (passes * count) * 1e9;
}

void compare(std::string_view op, int bits, const char* data, arithmetic_loop ours,
             const operand_arrays& x, int rounds) {
  const arithmetic_loop peer = bench::softfloat_loop(op, bits);
  std::vector<double> own;
  std::vector<double> other;
  for (int i = 0; i < rounds; ++i) {
    own.push_back(seconds_of(ours, x));
    if (peer != nullptr) other.push_back(seconds_of(peer, x));
  }
  const double t = nanoseconds(own);
  std::printf("fp%d %-5s %-7s %6.2f ns", bits, std::string(op).c_str(), data, t);
  if (peer != nullptr) {
    const double s = nanoseconds(other);
    std::printf("   SoftFloat %6.2f ns, ratio %.2f", s, s / t);
  }
  std::printf("\n");
}

template <class T>
void run_format(int rounds) {
  constexpr int bits = 8 * sizeof(T);
  for (const char* data : {"bits", "normal"}) {
    std::mt19937_64 engine(5);
    std::normal_distribution<float> normal;
    const auto draw = [&] {
      if (data[0] == 'b') return static_cast<std::uint32_t>(engine() >> (64 - bits));
      return static_cast<std::uint32_t>(code_of(T(normal(engine))));
    };
    std::vector<std::uint32_t> a(count), b(count), c(count), positive(count), out(count);
    for (std::size_t i = 0; i < count; ++i) {
      a[i] = draw();
      b[i] = draw();
      c[i] = draw();
      positive[i] = a[i] & ((1u << (bits - 1)) - 1);
    }
    const operand_arrays x{a.data(), b.data(), c.data(), out.data(), count};
    const operand_arrays roots{positive.data(), b.data(), c.data(), out.data(), count};
    compare("add", bits, data, loop<T, operation::add>, x, rounds);
    compare("mul", bits, data, loop<T, operation::mul>, x, rounds);
    compare("fma", bits, data, loop<T, operation::fma>, x, rounds);
    compare("div", bits, data, loop<T, operation::div>, x, rounds);
    compare("sqrt", bits, data, loop<T, operation::sqrt>, roots, rounds);
    compare("rem", bits, data, loop<T, operation::rem>, x, rounds);
    compare("rint", bits, data, loop<T, operation::rint>, x, rounds);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 201;
  if (rounds < 1 || argc > 2) {
    std::fprintf(stderr, "usage: arithmetic_bench [ROUNDS]\n");
    return 2;
  }
  run_format<fp16>(rounds);
  run_format<float>(rounds);
  return 0;
}
