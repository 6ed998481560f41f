// Functions of rows on the CUDA backends: describes a call to the kernels, and those in integers.
#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/workspace.hpp"
#include "backends/cuda/functions/functions.hpp"
#include "backends/cuda/functions/rows/cross_entropy.cuh"
#include "backends/cuda/functions/rows/norm_parameters.cuh"
#include "backends/cuda/functions/rows/row_kernels.cuh"
#include "backends/dispatch/calls/row_functions.hpp"
#include "backends/dispatch/visit.hpp"

namespace samebits::cuda {
namespace {

/// Computes the order of sums once, if all rows have it: kernels would take integer divisions.
row_launch with_order(row_launch d) {
  d.has_order = d.orders.are_one();
  if (d.has_order) d.order = d.orders.of_row(0);
  return d;
}

row_launch launch_of(const backends::row_call& call) {
  row_launch d = {.in = operand_of(call.in),
                  .grad = operand_of(call.grad),
                  .weight = operand_of(call.weight),
                  .bias = operand_of(call.bias),
                  .mean = operand_of(call.mean),
                  .rstd = operand_of(call.rstd),
                  .sum = operand_of(call.sum),
                  .out = operand_of(call.out),
                  .mask = operand_of(call.mask),
                  .scores = call.scores,
                  .rows = call.out.rows,
                  .format = call.out.format,
                  .orders = backends::orders_of(call),
                  .epsilon = call.epsilon};
  if (call.has_scores) {
    d.orders.of = backends::is_gradient(call.of) ? row_function::scaled_softmax_gradient
                                                 : row_function::scaled_softmax;
    d.sum = d.out;  // rows in memory keep softmax's argument there
  }
  return with_order(d);
}

row_launch launch_of(const backends::cross_entropy_call& call) {
  row_launch d = launch_of(backends::row_call{
      .of = row_function::log_softmax, .offset = call.offset, .in = call.in, .out = call.out});
  d.rows = call.in.rows;
  d.format = call.in.format;
  d.orders.format = call.rule.format;
  d.orders.n = call.in.cols;
  d.loss = {.rule = call.rule,
            .targets = call.targets,
            .ignore_index = call.ignore_index,
            .loss = operand_of(call.loss),
            .grad = operand_of(call.grad),
            .known_grad = operand_of(call.known_grad)};
  return with_order(d);
}

parameter_launch launch_of(const backends::norm_parameters_call& call) {
  return {operand_of(call.grad), operand_of(call.in),     operand_of(call.mean),
          operand_of(call.rstd), operand_of(call.weight), operand_of(call.bias),
          call.grad.rows,        call.grad.cols,          call.grad.format,
          call.order.threads};
}

}  // namespace

void enqueue_rows(const backends::row_call& call, arithmetic by, void* stream) {
  const row_launch d = launch_of(call);
  if (!by_units(by)) {
    return launch_function_of_rows<definition_rows>(d, static_cast<cudaStream_t>(stream));
  }
  backends::visit_quantized(call.out.format,
                            [&]<format_id Format>() { launch_native_rows<Format>(d, stream); });
}

bool launch_norm_tiles(const backends::fused_quantize_call& call, const tile_task& task,
                       void* stream) {
  bool launched = false;
  backends::visit_quantized(call.norm.out.format, [&]<format_id Format>() {
    launched = launch_native_norm_tiles<Format>(launch_of(call.norm), task, call.tiles.to, stream);
  });
  return launched;
}

std::size_t cross_entropy_bytes(const backends::cross_entropy_call& call) {
  return sizeof(std::uint32_t) * static_cast<std::size_t>(call.in.rows + 1);
}

void enqueue_cross_entropy(const backends::cross_entropy_call& call, arithmetic by, void* on) {
  const auto stream = static_cast<cudaStream_t>(on);
  const bool native = by_units(by);  // waits, the first time
  const workspace room(nullptr, cross_entropy_bytes(call), stream, "cross entropy: workspace");
  auto* const words = reinterpret_cast<std::uint32_t*>(room.data());
  const row_launch d = launch_of(call);
  if (!native) return launch_cross_entropy<definition_rows>(d, words, stream);
  backends::visit_quantized(
      call.in.format, [&]<format_id Format>() { launch_native_loss<Format>(d, words, stream); });
}

bool has_norm_parameters(const backends::norm_parameters_call& call) {
  return call.order.blocks == 1;
}

void enqueue_norm_parameters(const backends::norm_parameters_call& call, arithmetic by,
                             void* stream) {
  const parameter_launch d = launch_of(call);
  if (!by_units(by)) {
    return launch_norm_parameters<definition_rows>(d, static_cast<cudaStream_t>(stream));
  }
  backends::visit_quantized(
      call.grad.format, [&]<format_id Format>() { launch_native_parameters<Format>(d, stream); });
}

}  // namespace samebits::cuda
