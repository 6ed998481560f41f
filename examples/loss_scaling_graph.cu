// Training in FP16 without waiting for the host: backward pass, loss scaler and optimizer are one
// CUDA graph, replayed for each step. The initial scale is far too high, and the scaler lowers it.
// The host polls one report per step.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "samebits/device_loss_scaler.hpp"
#include "samebits/samebits.hpp"

namespace {

constexpr int parameters = 1 << 16;
constexpr int steps = 300;

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  std::exit(1);
}

/// Computes the gradients of scale * sum((w - 3)^2) / 2 in FP16; too large a scale gives Inf.
__global__ void backward(const float* w, const float* scale, samebits::fp16* gradients) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < parameters) gradients[i] = samebits::fp16((w[i] - 3.0f) * *scale);
}

/// Applies the gradients to the weights, unless the scaler skipped the step.
__global__ void descend(float* w, const samebits::fp16* gradients,
                        const samebits::step_report* decision) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= parameters || !decision->applied) return;
  w[i] -= 0.1f * (float(gradients[i]) * decision->grad_mul);
}

}  // namespace

int main() {
  float* w = nullptr;
  samebits::fp16* gradients = nullptr;
  check(cudaMalloc(&w, parameters * sizeof(float)));
  check(cudaMalloc(&gradients, parameters * sizeof(samebits::fp16)));
  check(cudaMemset(w, 0, parameters * sizeof(float)));

  const samebits::tensor_list gradient_list({{{gradients, samebits::format_id::fp16, 1, parameters,
                                               parameters, 1, samebits::memory_space::device},
                                              "w"}});
  samebits::native_scaling settings;
  settings.init_exponent = 20;
  settings.growth_interval = 100;
  samebits::device_loss_scaler scaler(gradient_list, settings,
                                      {.max_norm = 100.0, .reports = steps});

  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t step;
  check(cudaStreamCreate(&stream));
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  backward<<<parameters / 256, 256, 0, stream>>>(w, scaler.scale(), gradients);
  scaler.step(stream);
  descend<<<parameters / 256, 256, 0, stream>>>(w, gradients, scaler.decision());
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&step, graph, 0));
  for (int i = 0; i < steps; ++i) check(cudaGraphLaunch(step, stream));

  // The host may do other work here: poll() returns the reports that have arrived, without waiting.
  check(cudaStreamSynchronize(stream));
  int applied = 0, skipped = 0;
  samebits::step_report last;
  while (const auto report = scaler.poll()) {
    if (!report->applied && skipped++ == 0) {
      std::printf("step %d skipped: %s in %s at scale 2^%d\n", static_cast<int>(report->step),
                  std::string(samebits::name(report->cause)).c_str(),
                  gradient_list.name(static_cast<std::size_t>(report->first_bad)).c_str(),
                  report->exponent);
    }
    applied += report->applied ? 1 : 0;
    last = *report;
  }
  float value = 0;
  check(cudaMemcpy(&value, w, sizeof(value), cudaMemcpyDeviceToHost));
  std::printf("%d applied, %d skipped; scale 2^%d, norm %g, w = %.3f\n", applied, skipped,
              last.exponent, last.norm, static_cast<double>(value));
  std::printf("kept: %s\n",
              applied + skipped == steps && skipped > 0 && value > 2.9f ? "yes" : "no");
  check(cudaGraphExecDestroy(step));
  check(cudaGraphDestroy(graph));
  check(cudaStreamDestroy(stream));
  check(cudaFree(w));
  check(cudaFree(gradients));
  return 0;
}
