// Operations on a tensor list: check arguments and choose a backend.
#include "samebits/tensor_list.hpp"

#include <bit>
#include <cstdint>

#include "backends/api/lists/list_checks.hpp"
#include "backends/api/view_checks.hpp"
#include "backends/dispatch/access.hpp"
#include "backends/dispatch/calls/list.hpp"
#include "backends/dispatch/refuse.hpp"
#include "numerics/tensor_list/inspect.hpp"

namespace samebits {

inspect_report inspect(const tensor_list& tensors, const inspect_options& options,
                       const executor& where) {
  namespace b = backends;
  b::check_list(tensors, "tensors", b::number_formats);
  b::check_value("options.counts", options.counts, "inspect_counts");
  const b::device_scope on =
      b::scope_of({{tensors, "tensors"}}, {}, where.stream, b::completion::awaited);
  inspect_report report;
  b::run_on_list(&b::backend::inspect, {b::data_of(tensors), options.counts, &report}, tensors,
                 where);
  return report;
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
  refuse_if(!(inverse_scale >= 0), "inverse_scale: must be a number >= 0");
  b::check_list(tensors, "tensors", b::number_formats);
  const b::device_scope on =
      b::scope_of({{tensors, "tensors"}}, {}, where.stream, b::completion::awaited);
  unscale_report report;
  b::run_on_list(&b::backend::scale, {b::data_of(tensors), inverse_scale, &report}, tensors, where);
  return report;
}

void scale(const tensor_list& tensors, float factor, const executor& where) {
  namespace b = backends;
  b::check_number(factor, "factor");
  b::check_list(tensors, "tensors", b::number_formats);
  const b::device_scope on =
      b::scope_of({{tensors, "tensors"}}, {}, where.stream, b::completion::enqueued);
  b::run_on_list(&b::backend::scale, {b::data_of(tensors), factor, nullptr}, tensors, where);
}

void axpby(float a, const tensor_list& x, float b, const tensor_list& y, const tensor_list& out,
           const executor& where) {
  namespace in = backends;
  in::check_number(a, "a");
  in::check_number(b, "b");
  in::check_list(x, "x", in::number_formats);
  in::check_list(y, "y", in::number_formats);
  in::check_list(out, "out", in::number_formats);
  in::check_written(out, "out", x, "x");
  in::check_written(out, "out", y, "y");
  const in::device_scope on =
      in::scope_of({{out, "out"}, {x, "x"}, {y, "y"}}, {}, where.stream, in::completion::enqueued);
  const in::axpby_call call{std::bit_cast<std::uint32_t>(a), in::data_of(x).tables(),
                            std::bit_cast<std::uint32_t>(b), in::data_of(y).tables(),
                            in::data_of(out).tables(),       in::data_of(out).elements};
  in::run_on_list(&in::backend::axpby, call, out, where);
}

void accumulate(const tensor_list& acc, const tensor_list& gradients,
                const accumulate_options& options, const executor& where) {
  namespace b = backends;
  b::check_list(acc, "acc", b::number_formats);
  b::check_written(acc, "acc", gradients, "gradients");
  const b::device_scope on =
      b::scope_of({{acc, "acc"}, {gradients, "gradients"}}, {options.scales, "options.scales"},
                  where.stream, b::completion::enqueued);
  const b::accumulate_call call{b::data_of(acc).tables(), b::data_of(gradients).tables(),
                                options.scales, b::data_of(acc).elements};
  b::run_on_list(&b::backend::accumulate, call, acc, where);
}

void cast(const tensor_list& from, const tensor_list& to, const convert_options& options,
          const executor& where) {
  namespace b = backends;
  b::check_written(to, "to", from, "from");
  const cast_rule rule{options.rounding, options.overflow, options.nan};
  b::check_rule(rule, options.random);
  const b::device_scope on =
      b::scope_of({{to, "to"}, {from, "from"}}, {}, where.stream, b::completion::enqueued);
  b::run_on_list(&b::backend::cast, {b::data_of(from), b::data_of(to), rule, options.random}, to,
                 where);
}

float clip_factor(double norm, double max_norm) {
  refuse_if(norm < 0, "norm: must not be negative");
  refuse_if(!(max_norm >= 0), "max_norm: must be a number >= 0");
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
