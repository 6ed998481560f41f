// Tensor lists on threads: implementation.
#include "backends/threads/tensor_list.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <span>
#include <vector>

#include "backends/threads/parts.hpp"
#include "numerics/tensor_list/inspect.hpp"

namespace samebits::backends {
namespace {

/// Splits the chunks of a list among threads.
template <class Part>
void for_each_chunk_range(const numerics::tensor_tables& list, std::uint64_t elements,
                          const executor& where, const Part& part) {
  const auto chunks = static_cast<std::int64_t>(list.chunks);
  if (chunks == 0) return;
  for_each_part(chunks, where.threads, part,
                items_worth_a_thread(static_cast<std::int64_t>(elements) / chunks));
}

/// Calls f(tensor, partial statistics of its chunks) in list order.
template <class Statistics, class Function>
void for_each_tensor(const list_data& list, const std::vector<Statistics>& partial_statistics,
                     const Function& f) {
  const std::span<const Statistics> all(partial_statistics);
  for (std::size_t i = 0; i < list.rows.size(); ++i) {
    f(i, all.subspan(list.rows[i].first_chunk, numerics::chunks_of(list.rows[i].count)));
  }
}

/// Adds the counts and the amax of a chunk or of a tensor.
template <class Statistics>
void add_counts(tensor_statistics& all, const Statistics& part, std::uint32_t amax) {
  all.nan += part.nan;
  all.inf += part.inf;
  all.zeros += part.zeros;
  all.subnormals += part.subnormals;
  all.amax_bits = std::max(all.amax_bits, amax);
}

tensor_statistics statistics_of(const numerics::list_row& row,
                                std::span<const numerics::chunk_statistics> chunks) {
  tensor_statistics s;
  s.elements = static_cast<std::uint64_t>(row.count);
  numerics::square_sum squares;
  for (const numerics::chunk_statistics& c : chunks) {
    add_counts(s, c, c.amax);
    squares.add(c.squares);
  }
  s.squares = std::bit_cast<double>(squares.value());
  return s;
}

/// Combines the tensors of a report: the total, and the first bad tensor.
void combine_tensors(inspect_report& report) {
  tensor_statistics& all = report.total;
  numerics::square_sum squares;
  for (std::size_t i = 0; i < report.tensors.size(); ++i) {
    const tensor_statistics& s = report.tensors[i];
    all.elements += s.elements;
    add_counts(all, s, s.amax_bits);
    squares.add(std::bit_cast<std::uint64_t>(s.squares));
    if (report.first_bad < 0 && s.nan + s.inf != 0) report.first_bad = static_cast<std::int64_t>(i);
  }
  all.squares = std::bit_cast<double>(squares.value());
}

/// The conversion of one tensor.
convert_call conversion_of(const cast_call& call, std::uint32_t tensor) {
  convert_call one{call.from.tensors[tensor].view, call.to.tensors[tensor].view, call.rule,
                   call.random, 0};
  one.random.stream += tensor;
  one.pitch = call.random.pitch.value_or(static_cast<std::uint64_t>(one.in.cols));
  return one;
}

}  // namespace

void inspect_on_threads(const list_kernels& kernels, const inspect_call& call,
                        const executor& where) {
  const list_data& list = call.list;
  inspect_report& report = *call.report;
  report = {};
  std::vector<numerics::chunk_statistics> partial_statistics(list.row_of_chunk.size());
  std::mutex combining;
  for_each_chunk_range(list.tables(), list.elements, where, [&](element_range chunks) {
    std::array<std::uint64_t, numerics::exponent_buckets> exponents = {};
    kernels.inspect(list.tables(), chunks, call.counts, partial_statistics.data(),
                    exponents.data());
    if (call.counts != inspect_counts::distribution) return;
    const std::scoped_lock lock(combining);
    for (std::size_t i = 0; i < exponents.size(); ++i) report.exponents[i] += exponents[i];
  });
  report.tensors.reserve(list.rows.size());
  for_each_tensor(list, partial_statistics,
                  [&](std::size_t i, std::span<const numerics::chunk_statistics> chunks) {
                    report.tensors.push_back(statistics_of(list.rows[i], chunks));
                  });
  combine_tensors(report);
}

void scale_on_threads(const list_kernels& kernels, const scale_call& call, const executor& where) {
  const list_data& list = call.list;
  std::vector<numerics::scale_statistics> partial_statistics(list.row_of_chunk.size());
  for_each_chunk_range(list.tables(), list.elements, where, [&](element_range chunks) {
    kernels.scale(list.tables(), chunks, std::bit_cast<std::uint32_t>(call.factor),
                  partial_statistics.data());
  });
  if (call.report == nullptr) return;
  unscale_report& report = *call.report;
  report = {};
  report.elements = list.elements;
  for_each_tensor(list, partial_statistics,
                  [&](std::size_t i, std::span<const numerics::scale_statistics> chunks) {
                    const std::uint64_t bad_before = report.nonfinite + report.overflowed;
                    for (const numerics::scale_statistics& c : chunks) {
                      report.nonfinite += c.nonfinite;
                      report.overflowed += c.overflowed;
                      report.amax_bits = std::max(report.amax_bits, c.amax);
                    }
                    const bool bad = report.nonfinite + report.overflowed != bad_before;
                    if (bad && report.first_bad < 0)
                      report.first_bad = static_cast<std::int64_t>(i);
                  });
}

void axpby_on_threads(const list_kernels& kernels, const axpby_call& call, const executor& where) {
  for_each_chunk_range(call.out, call.elements, where,
                       [&](element_range chunks) { kernels.axpby(call, chunks); });
}

void accumulate_on_threads(const list_kernels& kernels, const accumulate_call& call,
                           const executor& where) {
  for_each_chunk_range(call.acc, call.elements, where,
                       [&](element_range chunks) { kernels.accumulate(call, chunks); });
}

void cast_on_threads(void (*convert)(const convert_call&, element_range), const cast_call& call,
                     const executor& where) {
  const numerics::tensor_tables tables = call.to.tables();
  for_each_chunk_range(tables, call.to.elements, where, [&](element_range chunks) {
    for (std::int64_t n = chunks.begin; n < chunks.end; ++n) {
      const numerics::list_chunk chunk = numerics::chunk_at(tables, static_cast<std::uint64_t>(n));
      convert(conversion_of(call, chunk.tensor), {chunk.first, chunk.first + chunk.count});
    }
  });
}

}  // namespace samebits::backends
