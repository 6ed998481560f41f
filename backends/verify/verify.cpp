// verify(): chooses the backends and the amount of comparisons, and builds the result entries.
#include "backends/verify/verify.hpp"

#include <string>
#include <utility>

#include "backends/dispatch/refuse.hpp"
#include "backends/verify/checks.hpp"
#include "samebits/self_test.hpp"

namespace samebits {
namespace backends::verification {

effort effort_of(verify_extent extent) {
  constexpr std::uint64_t k = 1024;
  if (extent == verify_extent::exhaustive) {
    return {.fp32_stride = 1,
            .patterns = k * k,
            .grid_limit = 2 * k * k,
            .stochastic = 16 * k * k,
            .stochastic_slices = 2,
            .slice = 16 * k * k,
            .quantize_rounds = 32,
            .amax_stride = 61};
  }
  return {.fp32_stride = 509,
          .patterns = 16 * k,
          .grid_limit = 32 * k,
          .stochastic = 64 * k + 13,
          .stochastic_slices = 4,
          .slice = 4 * k * k};
}

std::vector<samebits::verification> run_checks(
    check_function checks, std::span<const backend* const> backends, const backend& oracle,
    const effort& much, int threads,
    const std::function<void(const samebits::verification&)>& on_result) {
  std::vector<samebits::verification> entries;
  comparer compared(backends, oracle, threads);
  checks(compared, much, [&](const heading& h) {
    for (std::size_t i = 0; i < compared.count(); ++i) {
      const tally& t = h.per_backend[i];
      if (t.compared == 0) continue;
      entries.push_back({compared.name(i), h.text(t), t.compared, t.differed, t.first_difference});
      if (on_result) on_result(entries.back());
    }
  });
  return entries;
}

samebits::verification self_test_entry_of(const backend& b) {
  const std::vector<self_test_result> results = self_test(b.name);
  samebits::verification entry{b.name, "self-test, " + std::to_string(results.size()) + " checks",
                               results.size(), 0, ""};
  for (const self_test_result& r : results) {
    if (r.passed) continue;
    ++entry.differed;
    if (entry.first_difference.empty()) {
      entry.first_difference = std::string(r.check) + ": " + r.detail;
    }
  }
  return entry;
}

}  // namespace backends::verification

std::vector<verification> verify(const verify_options& options) {
  using namespace backends::verification;
  refuse_if(options.threads < 0, "options.threads must be >= 0, got ", options.threads);
  if (!options.backend.empty()) static_cast<void>(find_executor(options.backend));
  const backends::backend& reference = *backends::compiled().front();
  std::vector<verification> entries;
  std::vector<const backends::backend*> chosen;
  for (const backends::backend* b : backends::compiled()) {
    const bool named = b->name == options.backend;
    if (!named && (!options.backend.empty() || b == &reference)) continue;
    const std::string reason = b->why_unsupported();
    if (reason.empty()) {
      chosen.push_back(b);
      continue;
    }
    entries.push_back({b->name, "skipped: " + reason, 0, 0, ""});
    if (options.on_result) options.on_result(entries.back());
  }
  const bool is_reference = options.backend == reference.name;
  const auto add = [&](verification entry) {
    entries.push_back(std::move(entry));
    if (options.on_result) options.on_result(entries.back());
  };
  // A backend that fails its self-test refuses to quantize. So does the reference as the oracle of
  // statistics.
  const verification expected = self_test_entry_of(reference);
  if (!is_reference && expected.differed != 0) add(expected);
  std::vector<const backends::backend*> tested;
  for (const backends::backend* b : chosen) {
    if (b->self_test == nullptr) continue;
    const verification entry = b == &reference ? expected : self_test_entry_of(*b);
    add(entry);
    if (entry.differed == 0 && expected.differed == 0) tested.push_back(b);
  }
  const effort much = effort_of(options.extent);
  const backends::backend& oracle = is_reference ? scalar : reference;
  for (const auto& [checks, those] :
       {std::pair(&check_conversions, chosen), std::pair(&check_quantizations, tested)}) {
    const std::vector<verification> part =
        run_checks(checks, those, oracle, much, options.threads, options.on_result);
    entries.insert(entries.end(), part.begin(), part.end());
  }
  return entries;
}

}  // namespace samebits
