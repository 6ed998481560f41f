// Version, views and backends of the C interface.
#include <string>
#include <vector>

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "backends/threads/interruption.hpp"
#include "samebits/backend.hpp"
#include "samebits/c/base.h"
#include "samebits/core/config.hpp"

namespace api = samebits::c_api;

int32_t samebits_interface() { return SAMEBITS_C_INTERFACE; }

int32_t samebits_version() {
  return 10000 * SAMEBITS_VERSION_MAJOR + 100 * SAMEBITS_VERSION_MINOR + SAMEBITS_VERSION_PATCH;
}

const char* samebits_version_text() { return SAMEBITS_VERSION; }

int32_t samebits_has_cuda() {
#if defined(SAMEBITS_C_WITH_CUDA)
  return 1;
#else
  return 0;
#endif
}

samebits_view samebits_dense_view(int32_t format, const void* data, int64_t rows, int64_t cols) {
  return {.data = const_cast<void*>(data),
          .rows = rows,
          .cols = cols,
          .row_stride = cols,
          .col_stride = 1,
          .format = format,
          .memory = SAMEBITS_MEMORY_HOST};
}

samebits_interrupt_function samebits_set_interrupt_check(samebits_interrupt_function check) {
  return samebits::backends::set_interrupt_check(check);
}

samebits_status samebits_list_backends(samebits_backend_function each, void* user) {
  return api::guarded([&] {
    api::required(each, "each");
    for (const samebits::backend_info& info : samebits::compiled_backends()) {
      const std::string name(info.name);
      const std::string description(info.description);
      const samebits_backend backend = {.name = name.c_str(),
                                        .description = description.c_str(),
                                        .why_unsupported = info.why_unsupported.c_str(),
                                        .memory = static_cast<int32_t>(info.space),
                                        .supported = info.supported ? 1 : 0,
                                        .is_default = info.is_default ? 1 : 0,
                                        .reserved = 0};
      each(user, &backend);
    }
  });
}

samebits_status samebits_find_backend(const char* backend) {
  return api::guarded([&] { (void)samebits::find_executor(&api::required(backend, "backend")); });
}
