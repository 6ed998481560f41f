// Comparison of one call: implementation.
#include "backends/verify/comparison.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <mutex>

#include "backends/threads/parts.hpp"
#include "backends/verify/codes.hpp"

namespace samebits::backends::verification {
namespace {

/// The differing elements of a matrix: their number and the first one in row-major order.
struct differences {
  std::uint64_t count = 0;
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
};

/// Compares element by element, for results that are known to differ or are strided.
differences find_differences(const placement& p, format_id format, const std::byte* got,
                             const std::byte* expected, element_range range) {
  const auto width = static_cast<std::size_t>(storage_bytes(format));
  differences found;
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    const std::size_t at = p.offset(format, i / p.cols, i % p.cols);
    if (std::memcmp(got + at, expected + at, width) == 0) continue;
    ++found.count;
    if (i < found.first) found.first = i;
  }
  return found;
}

bool is_dense(const placement& p) { return p.col_stride == 1 && p.row_stride == p.cols; }

/// Compares on several threads: memory first, elements only if the memory differs.
differences differences_of(const placement& p, format_id format, std::span<const std::byte> got,
                           std::span<const std::byte> expected, int threads) {
  const auto width = static_cast<std::size_t>(storage_bytes(format));
  differences all;
  std::mutex access;
  for_each_part(p.rows * p.cols, threads, [&](element_range range) {
    if (is_dense(p)) {
      const std::size_t begin = p.shift + static_cast<std::size_t>(range.begin) * width;
      const std::size_t bytes = static_cast<std::size_t>(range.end - range.begin) * width;
      if (std::memcmp(got.data() + begin, expected.data() + begin, bytes) == 0) return;
    }
    const differences found = find_differences(p, format, got.data(), expected.data(), range);
    const std::lock_guard lock(access);
    all.count += found.count;
    all.first = std::min(all.first, found.first);
  });
  return all;
}

/// The first differing byte between the elements, as text.
std::string gap_text(std::span<const std::byte> got, std::span<const std::byte> expected) {
  std::size_t at = 0;
  while (got[at] == expected[at]) ++at;
  return "byte " + std::to_string(at) +
         " of the result's memory, between the elements, was written";
}

std::string rule_text(const comparison& c) {
  std::string text;
  for (const std::string_view part :
       {name(c.rule.rounding), name(c.rule.overflow), name(c.rule.nan)}) {
    text += (text.empty() ? "" : " ") + std::string(part);
  }
  return text;
}

std::size_t rule_number(const cast_rule& rule) {
  return (static_cast<std::size_t>(rule.rounding) * enum_count<overflow> +
          static_cast<std::size_t>(rule.overflow)) *
             enum_count<nan_policy> +
         static_cast<std::size_t>(rule.nan);
}

}  // namespace

std::size_t placement::offset(format_id format, std::int64_t row, std::int64_t col) const {
  return shift +
         static_cast<std::size_t>((row * row_stride + col * col_stride) * storage_bytes(format));
}

std::size_t placement::bytes(format_id format) const {
  return offset(format, rows - 1, cols - 1) + static_cast<std::size_t>(storage_bytes(format));
}

comparer::comparer(std::span<const backend* const> tested, const backend& reference, int threads)
    : reference_(&reference), threads_(threads) {
  for (const backend* b : tested) subjects_.emplace_back(*b, threads);
}

void comparer::set_input(const code_buffer& input) {
  input_ = &input;
  for (subject& s : subjects_) s.set_input(input.bytes());
}

void comparer::compare(const comparison& c, std::span<comparison_result> per_backend) {
  const convert_call call = call_of(c);
  const std::size_t out_bytes = c.out.bytes(c.to);
  const block whole{0, 0, c.in.rows, c.in.cols};
  bool has_expected = false;
  for (std::size_t i = 0; i < subjects_.size(); ++i) {
    if (!subjects_[i].has(call)) continue;
    if (!has_expected) run_reference(call, c);
    has_expected = true;
    for (const auto blocks : {std::span(&whole, 1), c.blocks}) {
      if (blocks.empty()) continue;
      add(per_backend[i], c,
          subjects_[i].run(call, c.in.shift, c.out.shift, out_bytes, std::byte{filling_}, blocks));
    }
  }
}

convert_call comparer::call_of(const comparison& c) const {
  const auto* in = input_->bytes().data() + c.in.shift;
  return {{in, input_->format(), c.in.rows, c.in.cols, c.in.row_stride, c.in.col_stride},
          {nullptr, c.to, c.out.rows, c.out.cols, c.out.row_stride, c.out.col_stride},
          c.rule,
          c.random,
          c.random.pitch.value_or(static_cast<std::uint64_t>(c.in.cols))};
}

void comparer::run_reference(const convert_call& call, const comparison& c) {
  // Each call uses a different fill byte, so that no result can come from an element's previous
  // content.
  filling_ = static_cast<unsigned char>(filling_ + 83);
  const std::size_t bytes = c.out.bytes(c.to);
  if (expected_.size() < bytes) expected_.resize(bytes);
  fill_bytes(std::span(expected_).first(bytes), std::byte{filling_}, threads_);
  convert_call expected = call;
  expected.out.data = expected_.data() + c.out.shift;
  reference_->convert.run(expected, {reference_->name, threads_, nullptr});
}

void comparer::add(comparison_result& t, const comparison& c,
                   std::span<const std::byte> got) const {
  const std::span expected = std::span(expected_).first(got.size());
  t.compared += static_cast<std::uint64_t>(c.in.rows * c.in.cols);
  t.sources.set(static_cast<std::size_t>(input_->format()));
  t.targets.set(static_cast<std::size_t>(c.to));
  t.rules.set(rule_number(c.rule));
  const differences found = differences_of(c.out, c.to, got, expected, threads_);
  const bool gaps = found.count == 0 && (!is_dense(c.out) || c.out.shift != 0) &&
                    std::memcmp(got.data(), expected.data(), got.size()) != 0;
  t.differed += found.count + (gaps ? 1 : 0);
  if ((found.count == 0 && !gaps) || !t.first_difference.empty()) return;
  if (gaps) {
    t.first_difference = gap_text(got, expected);
    return;
  }
  const std::int64_t row = found.first / c.out.cols;
  const std::int64_t col = found.first % c.out.cols;
  const auto width = static_cast<std::size_t>(storage_bytes(c.to));
  const std::size_t at = c.out.offset(c.to, row, col);
  const format_id from = input_->format();
  const std::uint64_t input = load(input_->bytes().data() + c.in.offset(from, row, col),
                                   static_cast<std::size_t>(storage_bytes(from)));
  t.first_difference = std::string(samebits::name(from)) + " " + hex(from, input) + " to " +
                       std::string(samebits::name(c.to)) + " " +
                       hex(c.to, load(got.data() + at, width)) + ", expected " +
                       hex(c.to, load(expected.data() + at, width)) + "; " + rule_text(c);
  if (c.rule.rounding == rounding::stochastic) {
    const std::uint64_t pitch = c.random.pitch.value_or(static_cast<std::uint64_t>(c.in.cols));
    t.first_difference += ", seed " + std::to_string(c.random.seed) + ", stream " +
                          std::to_string(c.random.stream) + ", index " +
                          std::to_string(c.random.offset + static_cast<std::uint64_t>(row) * pitch +
                                         static_cast<std::uint64_t>(col)) +
                          ", K = " + std::to_string(c.random.bits);
  }
}

}  // namespace samebits::backends::verification
