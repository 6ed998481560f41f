// Functions of rows through the C interface.
#include "samebits/row_functions.hpp"

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "backends/c_api/arguments/options.hpp"
#include "samebits/c/row_functions.h"

namespace api = samebits::c_api;

namespace {

samebits::softmax_options options_of(const samebits_softmax_options* options) {
  const samebits_softmax_options o = api::read(options, "options");
  return {api::enumerator<samebits::function_rule>(o.rule, "rule"), o.offset, o.num_warps,
          o.elements_per_thread};
}

samebits::layer_norm_options options_of(const samebits_layer_norm_options* options) {
  const samebits_layer_norm_options o = api::read(options, "options");
  return {api::enumerator<samebits::function_rule>(o.rule, "rule"), o.epsilon, o.offset};
}

}  // namespace

samebits_status samebits_softmax(const samebits_view* in, const samebits_view* out,
                                 const samebits_softmax_options* options,
                                 const samebits_executor* where) {
  return api::guarded([&] {
    samebits::softmax(api::view(in, "in"), api::view(out, "out"), options_of(options),
                      api::where(where));
  });
}

samebits_status samebits_log_softmax(const samebits_view* in, const samebits_view* out,
                                     const samebits_softmax_options* options,
                                     const samebits_executor* where) {
  return api::guarded([&] {
    samebits::log_softmax(api::view(in, "in"), api::view(out, "out"), options_of(options),
                          api::where(where));
  });
}

samebits_status samebits_softmax_gradient(const samebits_view* grad, const samebits_view* result,
                                          const samebits_view* out,
                                          const samebits_softmax_options* options,
                                          const samebits_executor* where) {
  return api::guarded([&] {
    samebits::softmax_gradient(api::view(grad, "grad"), api::view(result, "result"),
                               api::view(out, "out"), options_of(options), api::where(where));
  });
}

samebits_status samebits_log_softmax_gradient(const samebits_view* grad,
                                              const samebits_view* result, const samebits_view* out,
                                              const samebits_softmax_options* options,
                                              const samebits_executor* where) {
  return api::guarded([&] {
    samebits::log_softmax_gradient(api::view(grad, "grad"), api::view(result, "result"),
                                   api::view(out, "out"), options_of(options), api::where(where));
  });
}

samebits_status samebits_layer_norm(const samebits_view* in, const samebits_view* weight,
                                    const samebits_view* bias, const samebits_view* out,
                                    const samebits_view* mean, const samebits_view* rstd,
                                    const samebits_layer_norm_options* options,
                                    const samebits_executor* where) {
  return api::guarded([&] {
    samebits::layer_norm(api::view(in, "in"), api::optional_view(weight, "weight"),
                         api::optional_view(bias, "bias"), api::view(out, "out"),
                         api::optional_view(mean, "mean"), api::optional_view(rstd, "rstd"),
                         options_of(options), api::where(where));
  });
}

samebits_status samebits_layer_norm_gradient(const samebits_view* grad, const samebits_view* in,
                                             const samebits_view* mean, const samebits_view* rstd,
                                             const samebits_view* weight, const samebits_view* out,
                                             const samebits_layer_norm_options* options,
                                             const samebits_executor* where) {
  return api::guarded([&] {
    samebits::layer_norm_gradient(api::view(grad, "grad"), api::view(in, "in"),
                                  api::view(mean, "mean"), api::view(rstd, "rstd"),
                                  api::optional_view(weight, "weight"), api::view(out, "out"),
                                  options_of(options), api::where(where));
  });
}
