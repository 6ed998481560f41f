// Draws batches of cases, and makes a failing batch small.
#include "engine/core/check.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

#include "engine/core/compare.hpp"
#include "engine/core/shrink.hpp"

namespace samebits::support {
namespace {

std::vector<problem> draw_batch(const array_operation& op, std::uint64_t first, std::size_t count) {
  std::vector<problem> all(count);
  for_each_of(count, [&](std::size_t i) { all[i] = draw_problem(op, first + i); });
  return all;
}

/// Makes the failing problems of a report fewer and simpler.
class reduction {
 public:
  reduction(array_target& target, const array_target& judge, std::uint64_t elements,
            check_report& report)
      : target_(target), judge_(judge), elements_left_(elements), report_(report) {}

  void run() {
    while (report_.smallest.size() > 1) {
      const std::vector<problem> all = report_.smallest;
      const std::span halves(all);
      const std::size_t middle = all.size() / 2;
      if (!fails(halves.first(middle)) && !fails(halves.subspan(middle))) return;
    }
    shrunk(report_.smallest[0], [&](const problem& p) {
      const bool failing = fails({&p, 1});
      return attempt{failing, --shrinks_left_ > 0 && elements_left_ > 0};
    });
  }

 private:
  /// Whether problems fail, which then are those of the report.
  bool fails(std::span<const problem> problems) {
    const comparison found = compare(problems, target_, judge_);
    elements_left_ -= std::min(elements_left_, found.elements);
    if (found.text.empty()) return false;
    report_.smallest.assign(problems.begin(), problems.end());
    report_.failure = found.text;
    return true;
  }

  array_target& target_;
  const array_target& judge_;
  std::uint64_t elements_left_;
  int shrinks_left_ = 4000;
  check_report& report_;
};

}  // namespace

problem draw_problem(const array_operation& op, std::uint64_t seed) {
  const word_source next = words_from(seed);
  problem p{.what = op.draw(seed, next), .seed = seed};
  constexpr std::uint8_t fills[] = {0x00, 0xFF, 0x7F, 0x3C};
  if (below(4, next) == 0) p.fill = std::byte{one_of(fills, next)};
  return p;
}

check_report check_operation(const array_operation& op, array_target& target,
                             const check_effort& effort, const array_target& judge) {
  check_report report;
  while (report.cases < effort.cases && report.failure.empty()) {
    const auto count = std::min<std::uint64_t>(op.batch, effort.cases - report.cases);
    const std::vector<problem> batch =
        draw_batch(op, effort.seed + report.cases, static_cast<std::size_t>(count));
    const comparison found = compare(batch, target, judge);
    report.cases += count;
    report.elements += found.elements;
    report.failure = found.text;
    if (!found.text.empty()) report.smallest = batch;
  }
  if (report.failure.empty()) return report;
  if (effort.shrinks) reduction(target, judge, effort.shrinking_elements, report).run();
  const bool alone = report.smallest.size() == 1;
  const problem& p = report.smallest[0];
  report.failure = op.name + " on " + std::string(target.backend()) + ": " + report.failure +
                   (alone ? "\n  smallest failing case: "
                          : "\n  in a batch only, not alone, which begins with: ") +
                   p.what->text() + (alone ? codes_text(p) : "") +
                   "\n  repeat with: RC_PARAMS=\"seed=" + std::to_string(p.seed) +
                   " max_success=" + std::to_string(report.smallest.size()) + "\"";
  return report;
}

}  // namespace samebits::support
