// Comparison of one call: implementation.
#include "backends/verify/comparison.hpp"

#include <atomic>
#include <cstring>

#include "backends/threads/parts.hpp"
#include "backends/verify/codes.hpp"

namespace samebits::backends::verification {
namespace {

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b, int threads) {
  std::atomic<bool> same = true;
  for_each_part(static_cast<std::int64_t>(a.size()), threads, [&](element_range range) {
    const auto bytes = static_cast<std::size_t>(range.end - range.begin);
    if (std::memcmp(a.data() + range.begin, b.data() + range.begin, bytes) != 0) same = false;
  });
  return same;
}

/// Statistics are more than a code.
std::string text_of(const std::byte* element, std::size_t width) {
  return width > 8 ? std::string() : hex(load(element, width), width);
}

}  // namespace

void coverage::add(const coverage& other) {
  sources |= other.sources;
  targets |= other.targets;
  rules |= other.rules;
  tiles |= other.tiles;
  scale_rules |= other.scale_rules;
}

comparer::comparer(std::span<const backend* const> tested, const backend& oracle, int threads)
    : oracle_(oracle, threads), threads_(threads) {
  for (const backend* b : tested) subjects_.emplace_back(*b, threads);
}

void comparer::set_input(const code_buffer& input, const code_buffer* second) {
  input_ = &input;
  const auto bytes = second == nullptr ? std::span<const std::byte>() : second->bytes();
  oracle_.set_inputs({input.bytes(), bytes});
  for (subject& s : subjects_) s.set_inputs({input.bytes(), bytes});
}

void comparer::compare(const checked_call& call, std::span<tally> per_backend) {
  if (!call.supported_by(oracle_.tested())) return;
  bool has_expected = false;
  for (std::size_t i = 0; i < subjects_.size(); ++i) {
    if (!call.supported_by(subjects_[i].tested())) continue;
    if (!has_expected) {
      // Each call uses a different fill byte, so that no result can come from an element's previous
      // content.
      filling_ = static_cast<unsigned char>(filling_ + 83);
      oracle_.run(call.runs.front(), call.results, std::byte{filling_});
      has_expected = true;
    }
    per_backend[i].covers.add(call.covers);
    for (const call_function& run : call.runs) {
      subjects_[i].run(run, call.results, std::byte{filling_});
      for (std::size_t r = 0; r < call.results.size(); ++r) {
        add(per_backend[i], call, r, subjects_[i].result(r));
      }
    }
  }
}

/// Adds the differing elements of one result. If only the memory between elements differs, adds one.
void comparer::add(tally& t, const checked_call& call, std::size_t result,
                   std::span<const std::byte> got) const {
  const auto& [what, width, p] = call.results[result];
  const std::span<const std::byte> expected = oracle_.result(result);
  t.compared += static_cast<std::uint64_t>(p.rows * p.cols);
  if (same_bytes(got, expected, threads_)) return;
  const std::uint64_t before = t.differed;
  for (std::int64_t row = 0; row < p.rows; ++row) {
    for (std::int64_t col = 0; col < p.cols; ++col) {
      const std::size_t at = p.offset(width, row, col);
      if (std::memcmp(got.data() + at, expected.data() + at, width) == 0) continue;
      ++t.differed;
      if (!t.first_difference.empty()) continue;
      t.first_difference = call.text({result, row, col, text_of(got.data() + at, width),
                                      text_of(expected.data() + at, width)});
    }
  }
  if (t.differed != before) return;
  ++t.differed;
  if (!t.first_difference.empty()) return;
  t.first_difference =
      "memory between the elements of the " + std::string(what) + "s was written; " + call.rule;
}

}  // namespace samebits::backends::verification
