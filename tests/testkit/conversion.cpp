// Stages of a check: edges, sizes and offsets, random batches, and the sweep.
#include "samebits/testkit/conversion.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "samebits/error.hpp"
#include "support/generators.hpp"
#include "support/sweep.hpp"
#include "trial.hpp"

namespace samebits::testkit {
namespace {

constexpr std::uint64_t fp32_codes = std::uint64_t{1} << 32;

void check_effort_range(const conversion_under_test& conversion, const check_effort& effort) {
  if (effort.batches < 0) {
    throw invalid_argument("effort.batches must be >= 0, got " + std::to_string(effort.batches));
  }
  if (effort.batch_size < 1) {
    throw invalid_argument("effort.batch_size must be >= 1, got " +
                           std::to_string(effort.batch_size));
  }
  if (effort.sweep_stride != 0 && conversion.from != format_id::fp32) {
    throw invalid_argument(
        "effort.sweep_stride must be 0 unless conversion.from is fp32, got from " +
        std::string(name(conversion.from)));
  }
}

/// Returns the seed of RC_PARAMS if the user set one, else a new seed. RapidCheck's own
/// configuration prints each seed that it generates, so it is read only if RC_PARAMS is set.
std::uint64_t new_seed() {
  if (std::getenv("RC_PARAMS") != nullptr) return rc::detail::configuration().testParams.seed;
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

std::vector<std::uint64_t> random_codes(const conversion_under_test& conversion, std::uint64_t seed,
                                        std::size_t count) {
  const rc::Gen<std::uint64_t> generator = support::codes(conversion.from, conversion.to);
  rc::Random random(seed);
  std::vector<std::uint64_t> codes(count);
  for (std::uint64_t& code : codes) code = generator(random.split()).value();
  return codes;
}

std::vector<std::uint64_t> edge_codes(const trial_runner& runner, std::uint64_t seed) {
  const conversion_under_test& conversion = runner.conversion();
  std::vector<std::uint64_t> codes;
  const int bits = spec_of(conversion.from).storage_bits;
  if (bits <= 16) {
    for (std::uint64_t code = 0; code < std::uint64_t{1} << bits; ++code) codes.push_back(code);
  } else if (runner.steps()) {
    const auto around = support::code_steps(*runner.steps()).codes_around(2);
    codes.assign(around.begin(), around.end());
  } else {
    codes = random_codes(conversion, seed, 1 << 16);
  }
  return codes;
}

/// The stages in order. Each stage returns a result only if it fails.
class stages {
 public:
  stages(trial_runner& runner, const check_effort& effort)
      : runner_(runner), effort_(effort), seed_(effort.seed != 0 ? effort.seed : new_seed()) {}

  std::optional<check_result> edges() {
    constexpr std::size_t part = std::size_t{1} << 16;
    const std::vector<std::uint64_t> codes = edge_codes(runner_, seed_);
    for (std::size_t first = 0; first < codes.size(); first += part) {
      const std::size_t last = std::min(codes.size(), first + part);
      trial t;
      t.codes.assign(codes.begin() + static_cast<std::ptrdiff_t>(first),
                     codes.begin() + static_cast<std::ptrdiff_t>(last));
      if (auto failed = attempt(t, "the edges of the conversion")) return failed;
    }
    return std::nullopt;
  }

  std::optional<check_result> sizes() {
    const std::vector<std::uint64_t> pool = random_codes(runner_.conversion(), seed_, 4097);
    for (const std::int64_t around : {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096}) {
      for (std::int64_t size = around - 1; size <= around + 1; ++size) {
        for (int offset = 0; offset <= 16; offset += size > 257 ? 8 : 1) {
          for (const auto& [in, out] : {std::array{offset, 0}, {0, offset}, {offset, offset}}) {
            const trial t{{pool.begin(), pool.begin() + size}, in, out};
            if (auto failed = attempt(t, "sizes and offsets")) return failed;
          }
        }
      }
    }
    return std::nullopt;
  }

  std::optional<check_result> batches() {
    rc::Random random(seed_);
    for (int batch = 0; batch < effort_.batches; ++batch) {
      const auto maximum = static_cast<std::uint64_t>(effort_.batch_size);
      const auto count = static_cast<std::size_t>(1 + random.next() % maximum);
      const std::uint64_t offsets = random.next();
      trial t{random_codes(runner_.conversion(), random.next(), count),
              static_cast<int>(offsets % 17), static_cast<int>((offsets >> 32) % 17)};
      const std::string stage = "random batch " + std::to_string(batch) + " (seed " +
                                std::to_string(seed_) +
                                ", repeat with RC_PARAMS=\"seed=" + std::to_string(seed_) + "\")";
      if (auto failed = attempt(t, stage)) return failed;
    }
    return std::nullopt;
  }

  std::optional<check_result> sweep() {
    const std::uint64_t stride = effort_.sweep_stride;
    if (stride == 0) return std::nullopt;
    constexpr std::uint64_t part = std::uint64_t{1} << 22;
    for (std::uint64_t first = 0; first < fp32_codes;) {
      const std::uint64_t left = (fp32_codes - first - 1) / stride + 1;
      const auto count = static_cast<std::size_t>(std::min(left, part));
      const verdict v = runner_.run_sequence(first, stride, count);
      if (v.failed()) return runner_.failure(sequence(first, stride, count), v, "the sweep");
      if (left <= part) break;
      first += count * stride;
    }
    return std::nullopt;
  }

 private:
  std::optional<check_result> attempt(const trial& t, const std::string& stage) {
    const verdict v = runner_.run(t);
    if (!v.failed()) return std::nullopt;
    return runner_.failure(t, v, stage);
  }

  static trial sequence(std::uint64_t first, std::uint64_t stride, std::size_t count) {
    trial t;
    t.codes.resize(count);
    for (std::size_t i = 0; i < count; ++i) t.codes[i] = first + i * stride;
    return t;
  }

  trial_runner& runner_;
  check_effort effort_;
  std::uint64_t seed_;
};

}  // namespace

check_result check_raw(const conversion_under_test& conversion, const raw_function& function,
                       const check_effort& effort) {
  check_effort_range(conversion, effort);
  trial_runner runner(conversion, function);
  stages run(runner, effort);
  for (const auto stage : {&stages::edges, &stages::sizes, &stages::batches, &stages::sweep}) {
    if (auto failed = (run.*stage)()) return *failed;
  }
  return {runner.compared(), {}, std::nullopt};
}

}  // namespace samebits::testkit
