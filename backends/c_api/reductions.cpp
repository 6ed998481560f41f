// Reductions through the C interface.
#include "samebits/reductions.hpp"

#include <cstddef>
#include <span>

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "backends/c_api/arguments/options.hpp"
#include "samebits/c/reductions.h"

namespace api = samebits::c_api;

namespace {

samebits::dot_options options_of(const samebits_dot_options* options) {
  const samebits_dot_options o = api::read(options, "options");
  return {.precision = api::enumerator<samebits::accumulation>(o.precision, "options.precision"),
          .order = api::enumerator<samebits::sum_order>(o.order, "options.order")};
}

std::span<std::byte> bytes(void* workspace, size_t size) {
  api::check_array(static_cast<std::byte*>(workspace), size, "workspace");
  return {static_cast<std::byte*>(workspace), size};
}

}  // namespace

samebits_status samebits_amax(const samebits_view* in, float* result,
                              const samebits_executor* where) {
  return api::guarded([&] {
    api::required(result, "result") = samebits::amax(api::view(in, "in"), api::where(where));
  });
}

samebits_status samebits_counts(const samebits_view* in, samebits_element_counts* result,
                                const samebits_executor* where) {
  return api::guarded([&] {
    const auto c = samebits::counts(api::view(in, "in"), api::where(where));
    api::required(result, "result") = {.elements = c.elements,
                                       .nan = c.nan,
                                       .inf = c.inf,
                                       .zeros = c.zeros,
                                       .subnormals = c.subnormals};
  });
}

samebits_status samebits_sum(const samebits_view* in, double* result,
                             const samebits_executor* where) {
  return api::guarded([&] {
    api::required(result, "result") = samebits::sum(api::view(in, "in"), api::where(where));
  });
}

samebits_status samebits_sum_of_squares(const samebits_view* in, double* result,
                                        const samebits_executor* where) {
  return api::guarded([&] {
    api::required(result, "result") =
        samebits::sum_of_squares(api::view(in, "in"), api::where(where));
  });
}

samebits_status samebits_dot(const samebits_view* x, const samebits_view* y,
                             const samebits_dot_options* options, double* result,
                             const samebits_executor* where) {
  return api::guarded([&] {
    api::required(result, "result") =
        samebits::dot(api::view(x, "x"), api::view(y, "y"), options_of(options), api::where(where));
  });
}

samebits_status samebits_reduction_workspace(const samebits_view* in, size_t* bytes,
                                             const samebits_executor* where) {
  return api::guarded([&] {
    api::required(bytes, "bytes") =
        samebits::reduction_workspace(api::view(in, "in"), api::where(where));
  });
}

samebits_status samebits_enqueue_amax(const samebits_view* in, float* result,
                                      const samebits_executor* where) {
  return api::guarded(
      [&] { samebits::enqueue_amax(api::view(in, "in"), result, api::where(where)); });
}

samebits_status samebits_enqueue_counts(const samebits_view* in, samebits_element_counts* result,
                                        const samebits_executor* where) {
  return api::guarded([&] {
    samebits::enqueue_counts(api::view(in, "in"),
                             reinterpret_cast<samebits::element_counts*>(result),
                             api::where(where));
  });
}

samebits_status samebits_enqueue_sum(const samebits_view* in, double* result, void* workspace,
                                     size_t workspace_bytes, const samebits_executor* where) {
  return api::guarded([&] {
    samebits::enqueue_sum(api::view(in, "in"), result, bytes(workspace, workspace_bytes),
                          api::where(where));
  });
}

samebits_status samebits_enqueue_sum_of_squares(const samebits_view* in, double* result,
                                                void* workspace, size_t workspace_bytes,
                                                const samebits_executor* where) {
  return api::guarded([&] {
    samebits::enqueue_sum_of_squares(api::view(in, "in"), result, bytes(workspace, workspace_bytes),
                                     api::where(where));
  });
}

samebits_status samebits_enqueue_dot(const samebits_view* x, const samebits_view* y,
                                     const samebits_dot_options* options, double* result,
                                     void* workspace, size_t workspace_bytes,
                                     const samebits_executor* where) {
  return api::guarded([&] {
    samebits::enqueue_dot(api::view(x, "x"), api::view(y, "y"), result, options_of(options),
                          bytes(workspace, workspace_bytes), api::where(where));
  });
}
