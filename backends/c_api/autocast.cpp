// Autocast through the C interface.
#include "samebits/autocast.hpp"

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "samebits/c/autocast.h"

namespace api = samebits::c_api;

samebits_status samebits_autocast_rule_of(const char* operation, int32_t* rule) {
  return api::guarded([&] {
    api::required(rule, "rule") =
        static_cast<int32_t>(samebits::autocast_rule_of(&api::required(operation, "operation")));
  });
}

samebits_status samebits_apex_rule_of(const char* operation, int32_t* rule) {
  return api::guarded([&] {
    api::required(rule, "rule") =
        static_cast<int32_t>(samebits::apex_rule_of(&api::required(operation, "operation")));
  });
}

samebits_status samebits_operation_formats_of(const char* operation, int32_t precision,
                                              int32_t widest, samebits_operation_formats* formats) {
  return api::guarded([&] {
    samebits_operation_formats& out = api::required(formats, "formats");
    const auto found =
        samebits::formats_of(&api::required(operation, "operation"),
                             api::enumerator<samebits::training_precision>(precision, "precision"),
                             api::enumerator<samebits::format_id>(widest, "widest"));
    out = {.operands = -1, .gradients = -1, .result = -1};
    if (!found) return;
    out = {.operands = static_cast<int32_t>(found->operands),
           .gradients = static_cast<int32_t>(found->gradients),
           .result = static_cast<int32_t>(found->result)};
  });
}
