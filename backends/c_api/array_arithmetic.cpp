// Array arithmetic through the C interface.
#include "samebits/array_arithmetic.hpp"

#include <string>

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "samebits/arithmetic.hpp"
#include "samebits/c/array_arithmetic.h"
#include "samebits/error.hpp"

namespace api = samebits::c_api;

namespace {

samebits::operation operation_of(int32_t op) {
  return api::enumerator<samebits::operation>(op, "op");
}

/// Returns the C++ operands. Throws invalid_argument if an operand that the operation needs is
/// null. Ignores operands that the operation does not have.
samebits::array_operands operands_of(samebits::operation op, const samebits_view* a,
                                     const samebits_view* b, const samebits_view* c) {
  samebits::array_operands in = {.a = api::view(a, "a")};
  if (samebits::operand_count(op) >= 2) in.b = api::view(b, "b");
  if (samebits::operand_count(op) >= 3) in.c = api::view(c, "c");
  return in;
}

samebits::flags_view flags_of(const samebits_flags_view* each) {
  if (each == nullptr) return {};
  return {.data = reinterpret_cast<samebits::flags*>(each->data),
          .row_stride = each->row_stride,
          .col_stride = each->col_stride};
}

samebits::format_id arithmetic_format(int32_t format, const char* which) {
  const auto f = api::enumerator<samebits::format_id>(format, which);
  if (samebits::has_arithmetic(f)) return f;
  throw samebits::invalid_argument(std::string(which) +
                                   ": format must be one of fp32, fp16, bf16, e4m3, e5m2, got " +
                                   std::string(name(f)));
}

samebits::operand operand_of(const samebits_operand& x) {
  return {.format = arithmetic_format(x.format, "operands"), .code = x.code};
}

}  // namespace

samebits_status samebits_compute(int32_t op, const samebits_view* a, const samebits_view* b,
                                 const samebits_view* c, const samebits_view* out,
                                 const samebits_compute_options* options,
                                 const samebits_executor* where) {
  return api::guarded([&] {
    const samebits::operation operation = operation_of(op);
    samebits::compute(operation, operands_of(operation, a, b, c), api::view(out, "out"),
                      api::options(options), api::where(where));
  });
}

samebits_status samebits_compute_with_flags(int32_t op, const samebits_view* a,
                                            const samebits_view* b, const samebits_view* c,
                                            const samebits_view* out,
                                            const samebits_compute_options* options,
                                            const samebits_flags_view* each, uint32_t* raised,
                                            const samebits_executor* where) {
  return api::guarded([&] {
    const samebits::operation operation = operation_of(op);
    uint32_t& flags = api::required(raised, "raised");
    flags = static_cast<uint32_t>(samebits::compute_with_flags(
        operation, operands_of(operation, a, b, c), api::view(out, "out"), api::options(options),
        flags_of(each), api::where(where)));
  });
}

samebits_status samebits_enqueue_compute_with_flags(
    int32_t op, const samebits_view* a, const samebits_view* b, const samebits_view* c,
    const samebits_view* out, const samebits_compute_options* options,
    const samebits_flags_view* each, uint32_t* raised, const samebits_executor* where) {
  return api::guarded([&] {
    const samebits::operation operation = operation_of(op);
    samebits::enqueue_compute_with_flags(operation, operands_of(operation, a, b, c),
                                         api::view(out, "out"), raised, api::options(options),
                                         flags_of(each), api::where(where));
  });
}

samebits_status samebits_compute_code(int32_t op, const samebits_operand* operands, int32_t to,
                                      const samebits_cast_rule* rule, samebits_computed* result) {
  return api::guarded([&] {
    const samebits::operation operation = operation_of(op);
    const samebits_operand* x = &api::required(operands, "operands");
    samebits::operands in = {.a = operand_of(x[0])};
    if (samebits::operand_count(operation) >= 2) in.b = operand_of(x[1]);
    if (samebits::operand_count(operation) >= 3) in.c = operand_of(x[2]);
    const api::value_rule r = api::rule(rule);
    const samebits::arithmetic_result y =
        samebits::compute(operation, in, arithmetic_format(to, "to"), r.rule, r.random);
    api::required(result, "result") = {
        .code = y.code, .flags = static_cast<uint32_t>(y.raised), .reserved = 0};
  });
}
