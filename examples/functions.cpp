// What a GPU returns for exp and gelu, without a GPU: the bits of CUDA and of PyTorch.
#include <cstdio>
#include <vector>

#include "samebits/samebits.hpp"

int main() {
  using samebits::function, samebits::function_rule, samebits::view_of;
  const std::vector<float> x = {-2.0f, 0.1f, 1.0f};
  std::vector<float> y(x.size());

  samebits::evaluate(function::exp, view_of(x), view_of(y), {.rule = function_rule::cuda_13_0});
  std::printf("expf in a CUDA kernel: %.9g, %.9g, %.9g\n", y[0], y[1], y[2]);

  samebits::evaluate(function::gelu_tanh, view_of(x), view_of(y),
                     {.rule = function_rule::torch_2_11});
  std::printf("PyTorch's gelu on a GPU: %.9g, %.9g, %.9g\n", y[0], y[1], y[2]);

  const std::vector<float> grad(x.size(), 1.0f);
  samebits::evaluate_gradient(function::gelu_tanh, view_of(grad), view_of(x), view_of(y),
                              {.rule = function_rule::torch_2_11});
  std::printf("its gradient: %.9g, %.9g, %.9g\n", y[0], y[1], y[2]);
  return 0;
}
