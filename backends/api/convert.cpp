// convert(): checks arguments and chooses a backend.
#include <cstdint>
#include <string>

#include "backends/api/run_call.hpp"
#include "backends/dispatch/backend.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/self_test/self_test.hpp"
#include "samebits/convert.hpp"

namespace samebits {
namespace backends {

const backend& converting_backend(const executor& where, const convert_call& call) {
  return backend_for(&backend::convert, call, call.in.space, where, "has no ", call.in.format,
                     " to ", call.out.format, " with ", call.rule.rounding, ", ",
                     call.rule.overflow, ", ", call.rule.nan);
}

namespace {

void enqueue(const convert_call& call, const executor& where) {
  const device_scope on(memory_space::device, {{call.in, "in"}, {call.out, "out"}}, where.stream);
  const backend& chosen = converting_backend(where, call);
  if (is_empty(call.in)) return;
  require_tested(chosen, where.stream);
  chosen.convert.run(call, where);
}

}  // namespace
}  // namespace backends

void convert(const const_matrix_view& in, const matrix_view& out, const convert_options& options,
             const executor& where) {
  backends::check_view(in, "in");
  backends::check_view(out, "out");
  backends::check_shape_of(out, "out", in, "in");
  backends::check_distinct(out, "out");
  backends::check_overlap(in, "in", out);
  const cast_rule rule{options.rounding, options.overflow, options.nan};
  backends::check_rule(rule, options.random);
  backends::check_threads(where);
  backends::check_space_of(out, "out", in, "in");

  const backends::convert_call call{
      in, out, rule, options.random,
      options.random.pitch.value_or(static_cast<std::uint64_t>(in.cols))};
  if (in.space == memory_space::device) return backends::enqueue(call, where);
  const backends::backend& chosen = backends::converting_backend(where, call);
  if (backends::is_empty(in)) return;
  chosen.convert.run(call, where);
}

}  // namespace samebits
