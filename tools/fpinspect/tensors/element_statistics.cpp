// Statistics of the elements of a tensor: implementation.
#include "fpinspect/tensors/element_statistics.hpp"

#include <algorithm>
#include <vector>

#include "fpinspect/cli/parallel.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/quantize/quantize_source.hpp"

namespace fpinspect {
namespace {

/// Calls f(elements) for the elements of a tensor in C order: a view of the file, or of one part after
/// another that several threads have read.
template <class Function>
void for_each_part(const shown_tensor& tensor, std::size_t threads, const Function& f) {
  const auto view = [&](const std::byte* codes, std::uint64_t count) {
    return samebits::view_of_codes(tensor.how.format, static_cast<const void*>(codes), 1,
                                   static_cast<std::int64_t>(count));
  };
  const std::uint64_t count = tensor.info.count;
  if (const auto direct = tensor.view()) {
    return f(view(direct->data(), count));
  }
  constexpr std::uint64_t part = 1 << 20;  // elements
  constexpr std::uint64_t task = 1 << 15;  // of one thread
  const auto bytes = static_cast<std::size_t>(samebits::storage_bytes(tensor.how.format));
  std::vector<std::byte> codes(static_cast<std::size_t>(std::min(part, count)) * bytes);
  for (std::uint64_t first = 0; first < count; first += part) {
    const std::uint64_t size = std::min(part, count - first);
    for_each_index(static_cast<std::size_t>((size + task - 1) / task), threads,
                   [&](std::size_t i, std::size_t) {
                     const std::uint64_t at = i * task;
                     tensor.read(first + at, std::min(task, size - at), codes.data() + at * bytes);
                   });
    f(view(codes.data(), size));
  }
}

}  // namespace

samebits::cast_statistics statistics_of(const shown_tensor& tensor,
                                        samebits::statistics_request request,
                                        const samebits::executor& where) {
  request.format = tensor.how.format;
  const bool channels = request.row_amax || request.column_amax;
  samebits::statistics_pass pass(
      request,
      channels ? matrix_of(tensor.info)
               : samebits::matrix_shape{1, static_cast<std::int64_t>(tensor.info.count)},
      where);
  do {
    for_each_part(tensor, static_cast<std::size_t>(where.threads),
                  [&](const samebits::const_matrix_view& part) { pass.add(part); });
  } while (pass.again());
  return pass.result();
}

bool has_columns(const samebits::tensor_file::tensor_info& info, std::uint64_t most) {
  return info.shape.size() >= 2 && info.count != 0 && info.shape.back() <= most;
}

sqnr sqnr_of(const samebits::cast_effect& effect, const samebits::cast_statistics& stats) {
  if (stats.count == 0) return {.empty = true, .reason = "there are no elements"};
  if (effect.changed == 0) return {.exact = true};
  std::string reason;
  const auto count = [&](std::uint64_t elements, const char* what) {
    if (elements != 0) reason += cat(reason.empty() ? "" : ", ", elements, " became ", what);
  };
  count(effect.underflow, "0");
  count(effect.to_inf, "Inf");
  count(effect.to_nan, "NaN");
  count(effect.to_max, "finite");
  if (!reason.empty()) return {.reason = reason};
  if (const auto db = sqnr_db(effect.signal, effect.noise)) return {.db = db};
  return {.reason = "signal or noise is beyond binary64"};
}

std::map<int, std::uint64_t> exponents_of(std::span<const samebits::cast_statistics> stats) {
  std::map<int, std::uint64_t> exponents;
  for (const samebits::cast_statistics& one : stats) {
    for (const auto& [exponent, counts] : one.binades) exponents[exponent] += counts.all;
  }
  return exponents;
}

std::optional<double> channel_range::spread() const {
  return smallest == 0 ? std::nullopt : std::optional(largest / smallest);
}

std::optional<channel_range> range_of(std::span<const double> amaxes) {
  if (amaxes.empty()) return std::nullopt;
  channel_range range = {.channels = amaxes.size()};
  std::vector<double> sorted;
  for (std::size_t i = 0; i < amaxes.size(); ++i) {
    const double amax = amaxes[i];
    if (amax < 0) {
      ++range.not_finite;
      continue;
    }
    sorted.push_back(amax);
    if (amax == 0) ++range.zero;
    if (amax != 0 && (range.smallest == 0 || amax < range.smallest)) range.smallest = amax;
    if (sorted.size() == 1 || amax > range.largest) {
      range.largest = amax;
      range.largest_index = i;
    }
  }
  if (sorted.empty()) return range;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  range.median = *middle;
  return range;
}

}  // namespace fpinspect
