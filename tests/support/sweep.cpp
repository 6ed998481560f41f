// Merging step functions with runs of codes.
#include "support/sweep.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>

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

}  // namespace samebits::support
