// All 2^32 fp32 codes through array conversion, by every deterministic rule, against the oracle's
// step functions. A program of its own, since it takes minutes per destination:
//
//   convert_exhaustive [--to FORMAT] [--stride N] [--threads N] [--backend NAME] [--all-nan]
//
// --backend is the library's default unless given. It prints one line per rule with the codes
// compared and differing; the exit status is 1 if any differ and 2 for a bad command line. Without
// --all-nan the NaN policy is canonical alone.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "oracle/thresholds.hpp"
#include "samebits/backend.hpp"
#include "support/conversion_case.hpp"
#include "support/rules.hpp"
#include "support/sweep.hpp"

namespace samebits {
namespace {

using namespace support;

struct arguments {
  std::vector<format_id> to{format_id::fp16, format_id::bf16, format_id::e4m3, format_id::e5m2};
  std::uint64_t stride = 1;
  std::uint64_t threads = 1;
  std::string backend;
  bool all_nan_policies = false;
};

std::uint64_t positive_number(std::string_view option, const std::string& text) {
  std::size_t used = 0;
  const unsigned long long n = text.empty() || text[0] == '-' ? 0 : std::stoull(text, &used);
  if (n == 0 || used != text.size()) {
    throw std::invalid_argument(std::string(option) + ": '" + text + "' is not a positive number");
  }
  return n;
}

arguments parse(const std::vector<std::string>& words) {
  arguments a;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& option = words[i];
    if (option == "--all-nan") {
      a.all_nan_policies = true;
      continue;
    }
    if (i + 1 == words.size()) throw std::invalid_argument(option + ": unknown, or lacks a value");
    const std::string& value = words[++i];
    if (option == "--to") {
      const auto format = find_format(value);
      if (!format) throw std::invalid_argument("--to: '" + value + "' is not a format");
      a.to = {*format};
    } else if (option == "--stride") {
      a.stride = positive_number(option, value);
    } else if (option == "--threads") {
      a.threads = positive_number(option, value);
    } else if (option == "--backend") {
      a.backend = value;
    } else {
      throw std::invalid_argument(option + ": unknown");
    }
  }
  return a;
}

/// Each thread takes one contiguous part of the codes and makes array calls of its own.
sweep_result sweep_all(const oracle::step_function& f, format_id to, const arguments& a) {
  const code_steps steps(f);
  const std::uint64_t count = ((std::uint64_t{1} << 32) + a.stride - 1) / a.stride;
  std::vector<sweep_result> parts(static_cast<std::size_t>(a.threads));
  {
    std::vector<std::jthread> workers;
    for (std::uint64_t i = 0; i < a.threads; ++i) {
      const std::uint64_t first = count * i / a.threads * a.stride;
      const std::uint64_t last =
          std::min(count * (i + 1) / a.threads * a.stride, std::uint64_t{1} << 32);
      workers.emplace_back([&, i, first, last] {
        parts[static_cast<std::size_t>(i)] =
            sweep(f, steps, to, {first, a.stride, last}, {a.backend, 1});
      });
    }
  }
  sweep_result whole;
  for (const sweep_result& part : parts) {
    if (!whole.first_differing && part.first_differing) {
      whole.first_differing = part.first_differing;
      whole.got = part.got;
      whole.expected = part.expected;
    }
    whole.compared += part.compared;
    whole.differing += part.differing;
  }
  return whole;
}

/// Codes that differ, over all rules.
std::uint64_t run(format_id to, const arguments& a) {
  std::uint64_t compared = 0;
  std::uint64_t differing = 0;
  std::printf("fp32 to %s on %s, %llu threads\n", name(to).data(),
              std::string(a.backend.empty() ? default_executor().backend : a.backend).c_str(),
              static_cast<unsigned long long>(a.threads));
  const auto start = std::chrono::steady_clock::now();
  for (const cast_rule& rule : deterministic_rules()) {
    if (!a.all_nan_policies && rule.nan != nan_policy::canonical) continue;
    const oracle::step_function f =
        oracle::make_step_function(oracle_of(format_id::fp32), oracle_of(to), rule);
    const sweep_result result = sweep_all(f, to, a);
    std::printf("fp32 to %-8s  %-13s %-16s %-14s  compared %llu  differing %llu\n",
                std::string(name(to)).c_str(), name(rule.rounding).data(),
                name(rule.overflow).data(), name(rule.nan).data(),
                static_cast<unsigned long long>(result.compared),
                static_cast<unsigned long long>(result.differing));
    if (result.first_differing) {
      const conversion_case c{format_id::fp32, to, *result.first_differing, rule, {}, {},
                              "convert"};
      std::printf("%s\n", same_code(c, result.got, result.expected).message());
    }
    std::fflush(stdout);
    compared += result.compared;
    differing += result.differing;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("fp32 to %-8s  total: compared %llu  differing %llu  in %.0f s\n",
              std::string(name(to)).c_str(), static_cast<unsigned long long>(compared),
              static_cast<unsigned long long>(differing), seconds.count());
  return differing;
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  try {
    const samebits::arguments a = samebits::parse({argv + 1, argv + argc});
    std::uint64_t differing = 0;
    for (const samebits::format_id to : a.to) differing += samebits::run(to, a);
    return differing == 0 ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "convert_exhaustive: %s\n", e.what());
    return 2;
  }
}
