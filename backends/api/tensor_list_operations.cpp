// Operations on a tensor list: check arguments, choose a backend, split the chunks among threads
// and combine the chunks' partial statistics.
#include "samebits/tensor_list.hpp"

#include <algorithm>
#include <initializer_list>
#include <mutex>
#include <string>
#include <vector>

#include "backends/api/plan_checks.hpp"
#include "backends/api/view_checks.hpp"
#include "backends/dispatch/access.hpp"
#include "backends/dispatch/plan.hpp"
#include "backends/threads/pieces.hpp"
#include "numerics/tensor_list/inspect.hpp"
#include "samebits/error.hpp"

namespace samebits {
namespace backends {
namespace {

/// Splits the chunks of a list among threads.
template <class Part>
void for_each_chunk_range(const plan_data& plan, const executor& where, const Part& part) {
  const auto chunks = static_cast<std::int64_t>(plan.row_of_chunk.size());
  if (chunks == 0) return;
  // Average elements per chunk; >= 1.
  const auto chunk = static_cast<std::int64_t>(plan.elements) / chunks;
  for_each_piece(chunks, where.threads, part,
                 std::max<std::int64_t>(elements_worth_a_thread / chunk, 1));
}

/// Calls f(tensor, partial statistics of its chunks) in list order.
template <class Tally, class Function>
void for_each_tensor(const plan_data& plan, const std::vector<Tally>& tallies, const Function& f) {
  const std::span<const Tally> all(tallies);
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    f(i, all.subspan(plan.rows[i].first_chunk, numerics::chunks_of(plan.rows[i].count)));
  }
}

tensor_statistics statistics_of(const numerics::plan_row& row,
                                std::span<const numerics::chunk_tally> chunks) {
  tensor_statistics s;
  s.elements = static_cast<std::uint64_t>(row.count);
  numerics::square_sum squares;
  for (const numerics::chunk_tally& c : chunks) {
    s.nan += c.nan;
    s.inf += c.inf;
    s.zeros += c.zeros;
    s.subnormals += c.subnormals;
    s.amax_bits = std::max(s.amax_bits, c.amax);
    squares.add(c.squares);
  }
  s.squares = std::bit_cast<double>(squares.value());
  return s;
}

/// Combines the tensors of a report: the total, and the first bad tensor.
void join_tensors(inspect_report& report) {
  tensor_statistics& all = report.total;
  numerics::square_sum squares;
  for (std::size_t i = 0; i < report.tensors.size(); ++i) {
    const tensor_statistics& s = report.tensors[i];
    all.elements += s.elements;
    all.nan += s.nan;
    all.inf += s.inf;
    all.zeros += s.zeros;
    all.subnormals += s.subnormals;
    all.amax_bits = std::max(all.amax_bits, s.amax_bits);
    squares.add(std::bit_cast<std::uint64_t>(s.squares));
    if (report.first_bad < 0 && s.nan + s.inf != 0) report.first_bad = static_cast<std::int64_t>(i);
  }
  all.squares = std::bit_cast<double>(squares.value());
}

inspect_report inspect(const plan_kernels& kernels, const plan_data& plan, inspect_counts counts,
                       const executor& where) {
  inspect_report report;
  std::vector<numerics::chunk_tally> tallies(plan.row_of_chunk.size());
  std::mutex joining;
  for_each_chunk_range(plan, where, [&](element_range chunks) {
    std::array<std::uint64_t, numerics::exponent_buckets> exponents = {};
    kernels.inspect(plan.tables(), chunks, counts, tallies.data(), exponents.data());
    if (counts != inspect_counts::distribution) return;
    const std::scoped_lock lock(joining);
    for (std::size_t i = 0; i < exponents.size(); ++i) report.exponents[i] += exponents[i];
  });
  report.tensors.reserve(plan.rows.size());
  for_each_tensor(plan, tallies, [&](std::size_t i, std::span<const numerics::chunk_tally> chunks) {
    report.tensors.push_back(statistics_of(plan.rows[i], chunks));
  });
  join_tensors(report);
  return report;
}

unscale_report scale(const plan_kernels& kernels, const plan_data& plan, float factor,
                     const executor& where) {
  std::vector<numerics::scale_tally> tallies(plan.row_of_chunk.size());
  for_each_chunk_range(plan, where, [&](element_range chunks) {
    kernels.scale(plan.tables(), chunks, std::bit_cast<std::uint32_t>(factor), tallies.data());
  });
  unscale_report report;
  report.elements = plan.elements;
  for_each_tensor(plan, tallies, [&](std::size_t i, std::span<const numerics::scale_tally> chunks) {
    const std::uint64_t bad_before = report.nonfinite + report.overflowed;
    for (const numerics::scale_tally& c : chunks) {
      report.nonfinite += c.nonfinite;
      report.overflowed += c.overflowed;
      report.amax_bits = std::max(report.amax_bits, c.amax);
    }
    const bool bad = report.nonfinite + report.overflowed != bad_before;
    if (bad && report.first_bad < 0) report.first_bad = static_cast<std::int64_t>(i);
  });
  return report;
}

/// The view of one tensor, for convert().
matrix_view view_of_tensor(const plan_data& plan, std::uint32_t tensor) {
  return plan.tensors[tensor].view;
}

convert_call cast_call(const plan_data& from, const plan_data& to, std::uint32_t tensor,
                       const cast_rule& rule, const random_stream& random) {
  convert_call call{view_of_tensor(from, tensor), view_of_tensor(to, tensor), rule, random, 0};
  call.random.stream += tensor;
  call.pitch = random.pitch.value_or(static_cast<std::uint64_t>(call.in.cols));
  return call;
}

void cast(const backend& b, const plan_data& from, const plan_data& to, const cast_rule& rule,
          const random_stream& random, const executor& where) {
  for_each_chunk_range(to, where, [&](element_range chunks) {
    const numerics::plan_tables tables = to.tables();
    for (std::int64_t n = chunks.begin; n < chunks.end; ++n) {
      const numerics::plan_chunk chunk = numerics::chunk_at(tables, static_cast<std::uint64_t>(n));
      b.convert(cast_call(from, to, chunk.tensor, rule, random),
                {chunk.first, chunk.first + chunk.count});
    }
  });
}

}  // namespace
}  // namespace backends

inspect_report inspect(const tensor_list& tensors, const inspect_options& options,
                       const executor& where) {
  namespace b = backends;
  b::check_plan(tensors, "tensors", b::wide_plan_formats);
  b::check_value("options.counts", options.counts, inspect_counts_count, "inspect_counts");
  const b::device_scope on =
      b::scope_of({{tensors, "tensors"}}, {}, where.stream, b::completion::awaited);
  const b::backend& chosen = b::plan_backend(tensors, where);
  if (chosen.device_plans != nullptr) {
    return chosen.device_plans->inspect(b::data_of(tensors), options.counts, where.stream);
  }
  return b::inspect(*chosen.plans, b::data_of(tensors), options.counts, where);
}

norm_report l2norm(const tensor_list& tensors, const executor& where) {
  const inspect_report seen = inspect(tensors, {}, where);
  norm_report norms;
  norms.total = seen.total.norm();
  norms.tensors.reserve(seen.tensors.size());
  for (const tensor_statistics& s : seen.tensors) norms.tensors.push_back(s.norm());
  return norms;
}

unscale_report unscale(const tensor_list& tensors, float inverse_scale, const executor& where) {
  namespace b = backends;
  if (!(inverse_scale >= 0)) throw invalid_argument("inverse_scale: must be a number >= 0");
  b::check_plan(tensors, "tensors", b::wide_plan_formats);
  const b::device_scope on =
      b::scope_of({{tensors, "tensors"}}, {}, where.stream, b::completion::awaited);
  const b::backend& chosen = b::plan_backend(tensors, where);
  if (chosen.device_plans != nullptr) {
    unscale_report report;
    chosen.device_plans->scale(b::data_of(tensors), inverse_scale, &report, where.stream);
    return report;
  }
  return b::scale(*chosen.plans, b::data_of(tensors), inverse_scale, where);
}

void scale(const tensor_list& tensors, float factor, const executor& where) {
  namespace b = backends;
  b::check_number(factor, "factor");
  b::check_plan(tensors, "tensors", b::wide_plan_formats);
  const b::device_scope on =
      b::scope_of({{tensors, "tensors"}}, {}, where.stream, b::completion::enqueued);
  const b::backend& chosen = b::plan_backend(tensors, where);
  if (chosen.device_plans != nullptr) {
    return chosen.device_plans->scale(b::data_of(tensors), factor, nullptr, where.stream);
  }
  b::scale(*chosen.plans, b::data_of(tensors), factor, where);
}

void axpby(float a, const tensor_list& x, float b, const tensor_list& y, const tensor_list& out,
           const executor& where) {
  namespace in = backends;
  in::check_number(a, "a");
  in::check_number(b, "b");
  in::check_plan(x, "x", in::wide_plan_formats);
  in::check_plan(y, "y", in::wide_plan_formats);
  in::check_plan(out, "out", in::wide_plan_formats);
  in::check_written(out, "out", x, "x");
  in::check_written(out, "out", y, "y");
  const in::device_scope on =
      in::scope_of({{out, "out"}, {x, "x"}, {y, "y"}}, {}, where.stream, in::completion::enqueued);
  const in::backend& chosen = in::plan_backend(out, where);
  const in::axpby_call call{std::bit_cast<std::uint32_t>(a), in::data_of(x).tables(),
                            std::bit_cast<std::uint32_t>(b), in::data_of(y).tables(),
                            in::data_of(out).tables()};
  if (chosen.device_plans != nullptr) return chosen.device_plans->axpby(call, where.stream);
  in::for_each_chunk_range(in::data_of(out), where,
                           [&](in::element_range chunks) { chosen.plans->axpby(call, chunks); });
}

void accumulate(const tensor_list& acc, const tensor_list& gradients,
                const accumulate_options& options, const executor& where) {
  namespace b = backends;
  b::check_plan(acc, "acc", b::wide_plan_formats);
  b::check_written(acc, "acc", gradients, "gradients");
  const b::device_scope on =
      b::scope_of({{acc, "acc"}, {gradients, "gradients"}}, {options.scales, "options.scales"},
                  where.stream, b::completion::enqueued);
  const b::backend& chosen = b::plan_backend(acc, where);
  const b::accumulate_call call{b::data_of(acc).tables(), b::data_of(gradients).tables(),
                                options.scales};
  if (chosen.device_plans != nullptr) return chosen.device_plans->accumulate(call, where.stream);
  b::for_each_chunk_range(b::data_of(acc), where,
                          [&](b::element_range chunks) { chosen.plans->accumulate(call, chunks); });
}

void cast(const tensor_list& from, const tensor_list& to, const convert_options& options,
          const executor& where) {
  namespace b = backends;
  b::check_written(to, "to", from, "from");
  const cast_rule rule{options.round, options.on_overflow, options.on_nan};
  b::check_rule(rule, options.random);
  const b::device_scope on =
      b::scope_of({{to, "to"}, {from, "from"}}, {}, where.stream, b::completion::enqueued);
  const b::backend& chosen = b::plan_backend(to, where);
  if (chosen.device_plans != nullptr) {
    const b::cast_call call{b::data_of(from), b::data_of(to), rule, options.random};
    return chosen.device_plans->cast(call, where.stream);
  }
  b::cast(chosen, b::data_of(from), b::data_of(to), rule, options.random, where);
}

float clip_factor(double norm, double max_norm) {
  if (norm < 0) throw invalid_argument("norm: must not be negative");
  if (!(max_norm >= 0)) throw invalid_argument("max_norm: must be a number >= 0");
  // Neither number is below -0, so clearing the sign turns -0 into 0 and changes nothing else.
  const auto bits = [](double x) {
    return std::bit_cast<std::uint64_t>(x) & ~numerics::binary<std::uint64_t>::sign_bit;
  };
  return std::bit_cast<float>(numerics::clip_factor(bits(norm), bits(max_norm)));
}

clip_report clip(const tensor_list& tensors, double max_norm, const executor& where) {
  clip_factor(0, max_norm);  // refuses an invalid max_norm before reading the tensors
  clip_report report;
  report.norm = inspect(tensors, {}, where).total.norm();
  report.factor = clip_factor(report.norm, max_norm);
  const bool finite = std::bit_cast<std::uint64_t>(report.norm) < numerics::binary64::inf;
  if (finite && report.factor != 1.0f) scale(tensors, report.factor, where);
  return report;
}

}  // namespace samebits
