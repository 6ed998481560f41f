// Functions of arrays and of tensor lists through the C interface.
#include "samebits/evaluate.hpp"

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "backends/c_api/arguments/handles.hpp"
#include "backends/c_api/arguments/options.hpp"
#include "samebits/c/evaluate.h"

namespace api = samebits::c_api;

namespace {

samebits::evaluate_options options_of(const samebits_evaluate_options* options) {
  const samebits_evaluate_options o = api::read(options, "options");
  samebits::evaluate_options result{
      .rule = api::enumerator<samebits::function_rule>(o.rule, "rule"),
      .round = api::enumerator<samebits::rounding>(o.rounding, "rounding"),
      .on_overflow = api::enumerator<samebits::overflow>(o.overflow, "overflow"),
      .random = api::random(o.random)};
  if (o.has_parameter != 0) result.parameter = o.parameter;
  return result;
}

}  // namespace

samebits_status samebits_evaluate(int32_t f, const samebits_view* in, const samebits_view* out,
                                  const samebits_evaluate_options* options,
                                  const samebits_executor* where) {
  return api::guarded([&] {
    samebits::evaluate(api::enumerator<samebits::function>(f, "f"), api::view(in, "in"),
                       api::view(out, "out"), options_of(options), api::where(where));
  });
}

samebits_status samebits_evaluate_gradient(int32_t f, const samebits_view* grad,
                                           const samebits_view* in, const samebits_view* out,
                                           const samebits_evaluate_options* options,
                                           const samebits_executor* where) {
  return api::guarded([&] {
    samebits::evaluate_gradient(api::enumerator<samebits::function>(f, "f"),
                                api::view(grad, "grad"), api::view(in, "in"), api::view(out, "out"),
                                options_of(options), api::where(where));
  });
}

samebits_status samebits_tensor_list_evaluate(int32_t f, const samebits_tensor_list* in,
                                              const samebits_tensor_list* out,
                                              const samebits_evaluate_options* options,
                                              const samebits_executor* where) {
  return api::guarded([&] {
    samebits::evaluate(api::enumerator<samebits::function>(f, "f"), api::list_of(in, "in"),
                       api::list_of(out, "out"), options_of(options), api::where(where));
  });
}

samebits_status samebits_tensor_list_evaluate_gradient(int32_t f, const samebits_tensor_list* grad,
                                                       const samebits_tensor_list* in,
                                                       const samebits_tensor_list* out,
                                                       const samebits_evaluate_options* options,
                                                       const samebits_executor* where) {
  return api::guarded([&] {
    samebits::evaluate_gradient(api::enumerator<samebits::function>(f, "f"),
                                api::list_of(grad, "grad"), api::list_of(in, "in"),
                                api::list_of(out, "out"), options_of(options), api::where(where));
  });
}
