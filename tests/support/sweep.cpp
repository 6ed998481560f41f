// Merging step functions with runs of codes.
#include "support/sweep.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/core/target.hpp"
#include "samebits/convert.hpp"

namespace samebits::support {
namespace {

constexpr std::uint64_t codes = std::uint64_t{1} << 32;
constexpr std::uint64_t sign = 0x80000000u;
constexpr std::uint64_t infinity = 0x7F800000u;

}  // namespace

std::optional<std::size_t> first_difference(format_id f, const std::vector<std::byte>& a,
                                            const std::vector<std::byte>& b) {
  if (std::memcmp(a.data(), b.data(), a.size()) == 0) return std::nullopt;  // the usual case, fast
  const auto at = std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin();
  return static_cast<std::size_t>(at / storage_bytes(f));
}

code_steps::code_steps(const oracle::step_function& f) : storage_bits_(f.to->storage_bits) {
  if (f.from->name != "fp32") {
    throw std::invalid_argument("support::code_steps: f is from " + std::string(f.from->name) +
                                ", expected fp32");
  }
  for (const oracle::step& s : f.positive) append(s.first, s.code);
  append(infinity, f.pos_inf);
  append(infinity + 1, f.pos_nan);
  for (const oracle::step& s : f.negative) append(sign + s.first, s.code);
  append(sign + infinity, f.neg_inf);
  append(sign + infinity + 1, f.neg_nan);
  append(codes, 0);
}

template <class Element>
void code_steps::fill_elements(std::uint64_t first, std::uint64_t stride, std::size_t count,
                               Element* expected) const {
  auto next = std::upper_bound(segments_.begin(), segments_.end(), first,
                               [](std::uint64_t code, const segment& s) { return code < s.first; });
  std::uint64_t code = first;
  for (std::size_t i = 0; i < count;) {
    while (next->first <= code) ++next;
    const std::uint64_t left = (next->first - code + stride - 1) / stride;
    const std::size_t run = static_cast<std::size_t>(std::min<std::uint64_t>(left, count - i));
    std::fill_n(expected + i, run, static_cast<Element>(std::prev(next)->code));
    i += run;
    code += run * stride;
  }
}

void code_steps::fill(std::uint64_t first, std::uint64_t stride, std::size_t count,
                      void* expected) const {
  if (count != 0 && first + stride * (count - 1) >= codes) {
    throw std::invalid_argument("support::code_steps::fill: codes end at 2^32");
  }
  switch (storage_bits_) {
    case 8: return fill_elements(first, stride, count, static_cast<std::uint8_t*>(expected));
    case 16: return fill_elements(first, stride, count, static_cast<std::uint16_t*>(expected));
    default: return fill_elements(first, stride, count, static_cast<std::uint32_t*>(expected));
  }
}

std::vector<std::uint64_t> code_steps::at(const std::vector<std::uint32_t>& inputs) const {
  std::vector<std::uint64_t> expected;
  expected.reserve(inputs.size());
  auto next = segments_.begin();
  for (const std::uint32_t code : inputs) {
    while (next->first <= code) ++next;
    expected.push_back(std::prev(next)->code);
  }
  return expected;
}

std::vector<std::uint32_t> code_steps::codes_around(std::uint32_t reach) const {
  std::vector<std::uint32_t> found;
  for (const segment& s : segments_) {
    const std::uint64_t low = s.first < reach ? 0 : s.first - reach;
    const std::uint64_t high = std::min(s.first + reach, codes - 1);
    for (std::uint64_t c = low; c <= high; ++c) found.push_back(static_cast<std::uint32_t>(c));
  }
  for (const std::uint64_t base : {infinity, sign + infinity}) {
    for (int bit = 0; bit < 23; ++bit) {
      const std::uint32_t payload = std::uint32_t{1} << bit;
      found.push_back(static_cast<std::uint32_t>(base) + payload);
      found.push_back(static_cast<std::uint32_t>(base) + (0x7FFFFFu ^ payload));
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

sweep_result sweep(const oracle::step_function& f, const code_steps& steps, format_id to,
                   const sweep_range& range, const executor& where) {
  constexpr std::size_t chunk = std::size_t{1} << 16;  // stays in a second-level cache
  const auto bytes = static_cast<std::size_t>(storage_bytes(to));
  std::vector<std::uint32_t> in(chunk);
  std::vector<std::byte> got(chunk * bytes);
  std::vector<std::byte> expected(chunk * bytes);
  const convert_options options{f.rule.rounding, f.rule.overflow, f.rule.nan, {}};

  sweep_result result;
  for (std::uint64_t code = range.first; code < range.end;) {
    const std::uint64_t left = (range.end - code + range.stride - 1) / range.stride;
    const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(left, chunk));
    for (std::size_t i = 0; i < count; ++i) {
      in[i] = static_cast<std::uint32_t>(code + i * range.stride);
    }
    const auto columns = static_cast<std::int64_t>(count);
    convert(view_of_codes(format_id::fp32, std::as_const(in).data(), 1, columns),
            view_of_codes(to, got.data(), 1, columns), options, where);
    steps.fill(code, range.stride, count, expected.data());
    result.compared += count;
    if (std::memcmp(got.data(), expected.data(), count * bytes) != 0) {
      const const_matrix_view out = view_of_codes(to, std::as_const(got).data(), 1, columns);
      const const_matrix_view right = view_of_codes(to, std::as_const(expected).data(), 1, columns);
      for (std::int64_t i = 0; i < columns; ++i) {
        const std::uint64_t a = code_at(out, 0, i);
        const std::uint64_t b = code_at(right, 0, i);
        if (a == b) continue;
        if (result.differing++ == 0) {
          result.first_differing = in[static_cast<std::size_t>(i)];
          result.got = a;
          result.expected = b;
        }
      }
    }
    code += count * range.stride;
  }
  return result;
}

}  // namespace samebits::support
