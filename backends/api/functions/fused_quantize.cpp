// Fused operators whose result is quantized: on device memory one call, on host memory two.
#include <cstddef>
#include <vector>

#include "backends/api/functions/fused_call.hpp"
#include "samebits/operators.hpp"
#include "samebits/quantize.hpp"

namespace samebits {
namespace backends {
namespace {

/// Checks an operand beside the first one, whose quantization is checked.
void check_second(const const_matrix_view& v, const char* which, const quantize_call& tiles) {
  check_like(v, which, tiles.in, "gate");
  check_apart_from(tiles.outputs, v, which);
}

void run_on_host(fused_quantize_call call, const executor& where) {
  matrix_view& out = call.elements.out[0];
  std::vector<std::byte> memory(
      static_cast<std::size_t>(out.rows * out.cols * storage_bytes(out.format)));
  out.data = memory.data();
  call.tiles.in = out;
  const auto has = [&](const backend& b) {
    return b.fused.has(call.elements) && b.quantize.has(call.tiles);
  };
  const backend& chosen = backend_for(has, memory_space::host, where, "has no fused operators");
  if (!is_empty(out)) chosen.fused.run(call.elements, where);
  chosen.quantize.run(call.tiles, where);
}

}  // namespace

void check_apart_from(const quantize_outputs& outputs, const const_matrix_view& v,
                      const char* which) {
  for (const matrix_view& out : {outputs.codes, outputs.scales, outputs.codes_transposed,
                                 outputs.scales_transposed, outputs.tensor_scale}) {
    if (out.data != nullptr) check_apart(v, which, out, "outputs");
  }
}

void run_on_device(const fused_quantize_call& call, device_finder memory, const executor& where) {
  add_quantization(memory, call.tiles);
  const device_scope on(memory_space::device, memory.device(), where.stream);
  backend_for(&backend::fused_quantize, call, memory_space::device, where, "has no fused operators")
      .fused_quantize.run(call, where);
}

}  // namespace backends

void gated_quantize(function f, const const_matrix_view& gate, const const_matrix_view& up,
                    const quantize_outputs& outputs, const quantize_options& options,
                    function_rule rule, const executor& where) {
  using namespace backends;
  fused_quantize_call call;
  call.tiles = checked_call(gate, outputs, options);
  check_second(up, "up", call.tiles);
  check_threads(where);
  const matrix_view out = {nullptr, gate.format, gate.rows, gate.cols, gate.cols, 1, gate.space};
  call.elements.plan = gated_plan(fused::gated, f, rule, out);
  call.elements.in[0].view = gate;
  call.elements.in[1].view = up;
  call.elements.out[0] = out;
  call.tiles.in = out;
  call.tiles.workspace = nullptr;
  if (gate.space == memory_space::host) return run_on_host(call, where);
  device_finder memory(memory_space::device);
  memory.add(address_of(gate), "gate");
  memory.add(address_of(up), "up");
  run_on_device(call, memory, where);
}

}  // namespace samebits
