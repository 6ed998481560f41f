// The reference kernels of sums: decode and add by the definition.
#include "backends/dispatch/calls/sums.hpp"

#include <cstring>

#include "backends/reference/cells.hpp"
#include "backends/reference/reference.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"

namespace samebits::backends {
namespace {

namespace torch = numerics::torch_2_11;

/// Calls f(i, value of codes[i]) for i < n.
template <class Function>
void for_each_value(const std::byte* codes, std::int64_t n, format_id format, const Function& f) {
  with_code_of(format, [&]<class Code>(Code) {
    for (std::int64_t i = 0; i < n; ++i) {
      Code code;
      std::memcpy(&code, codes + i * static_cast<std::int64_t>(sizeof code), sizeof code);
      f(i, torch::value_of<std::uint32_t>(format, code));
    }
  });
}

void add(std::uint32_t* sums, const std::byte* codes, std::int64_t n, format_id format,
         bool squares) {
  for_each_value(codes, n, format, [&](std::int64_t i, std::uint32_t x) {
    sums[i] = squares ? numerics::ptx::fma(x, x, sums[i]) : numerics::ptx::add(sums[i], x);
  });
}

void add_products(std::uint32_t* weight, std::uint32_t* bias, const std::byte* grad,
                  const std::byte* x, std::int64_t n, format_id format,
                  const torch::row_statistics& of_row) {
  const std::int64_t bytes = spec_of(format).storage_bits / 8;
  for_each_value(grad, n, format, [&](std::int64_t i, std::uint32_t g) {
    for_each_value(x + i * bytes, 1, format, [&](std::int64_t, std::uint32_t value) {
      weight[i] = torch::with_product(weight[i], g, value, of_row.mean, of_row.rstd);
    });
  });
  add(bias, grad, n, format, false);
}

}  // namespace

const sum_kernels& reference_sums() {
  static constexpr sum_kernels kernels = {add, add_products, in_any_state};
  return kernels;
}

}  // namespace samebits::backends
