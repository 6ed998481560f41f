// A wrong backend for a copy of fpinspect: the tie 464, fp32 to e4m3, goes up instead of to even.
//
// Defining this function puts it in the place of the CUDA backends in the registry.
#include <cstdint>
#include <cstring>

#include "backends/dispatch/backend.hpp"
#include "backends/reference/reference.hpp"
#include "backends/threads/on_threads.hpp"
#include "backends/threads/segments.hpp"

namespace samebits::backends {
namespace {

bool has_one_rule(const convert_call& call) {
  return call.in.format == format_id::fp32 && call.out.format == format_id::e4m3 &&
         call.rule == cast_rule{};
}

void convert_wrongly(const convert_call& call, element_range range) {
  reference_convert(call, range);
  for_each_segment(call, range, [](const row_segment& r) {
    for (std::int64_t i = 0; i < r.count; ++i) {
      std::uint32_t code = 0;
      std::memcpy(&code, r.in + i * r.in_step, sizeof code);
      if (code == 0x43E80000u) r.out[i * r.out_step] = std::byte{0x7F};
    }
  });
}

const backend planted = {
    .name = "planted",
    .description = "a wrong tie",
    .space = memory_space::host,
    .why_unsupported = [] { return std::string(); },
    .convert = {.supports = has_one_rule, .run = convert_on_threads<convert_wrongly>},
};
const backend absent = {
    .name = "absent",
    .description = "lacks its machine",
    .space = memory_space::device,
    .why_unsupported = [] { return std::string("there is no such machine"); },
};
const backend* const list[] = {&absent, &planted, nullptr};

}  // namespace
}  // namespace samebits::backends

extern "C" const samebits::backends::backend* const* samebits_cuda_backends();
const samebits::backends::backend* const* samebits_cuda_backends() {
  return samebits::backends::list;
}
