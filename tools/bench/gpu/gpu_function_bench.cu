// gpu_function_bench: times functions on a GPU beside a plain device copy: by rule `exact`, and those
// of 16 bits by torch_2_11 too.
//
//   gpu_function_bench [--log2-elements N] [--only TEXT]      default 28 elements, all work
//
// Share of copy = (bytes a call must move / its time) / bandwidth of a copy. A call must read each
// operand once and write each result once. The copy is cudaMemcpyAsync between two device buffers
// in the same run; its bandwidth counts bytes read and bytes written. Operands are normally
// distributed, those of logarithms, rsqrt and reciprocal in magnitude. Figures are medians of 9
// rounds over all work. torch_bench.py --functions times PyTorch on as many elements.
#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gpu_timing.hpp"
#include "samebits/samebits.hpp"

namespace {

using namespace samebits;
using namespace samebits::bench;
using enum format_id;

/// Fills x with normally distributed numbers, in pairs by the method of Box and Muller.
__global__ void fill(float* x, std::int64_t count, bool magnitudes) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; 2 * i < count;
       i += step) {
    const std::uint32_t u = random_word(3, 0, static_cast<std::uint64_t>(i));
    const std::uint32_t v = random_word(3, 1, static_cast<std::uint64_t>(i));
    const float radius = sqrtf(-2.0f * logf(((u >> 8) + 1) * 0x1p-24f));
    const float angle = (v >> 8) * 0x1p-23f;
    const float a = radius * cospif(angle), b = radius * sinpif(angle);
    x[2 * i] = magnitudes ? fabsf(a) : a;
    x[2 * i + 1] = magnitudes ? fabsf(b) : b;
  }
}

/// Device buffers that all work shares.
struct buffers {
  std::int64_t elements;
  void* numbers[2] = {};    ///< in fp32: normally distributed; their magnitudes
  void* halves[2][2] = {};  ///< the same in bf16 and fp16
  void* grad = nullptr;     ///< in fp32
  void* out = nullptr;

  [[nodiscard]] matrix_view view(void* data, format_id f) const {
    return on_device(view_of_codes(f, data, 1, elements));
  }
  [[nodiscard]] const_matrix_view operand(format_id f, bool magnitudes) const {
    const int i = magnitudes ? 1 : 0;
    return view(f == fp32 ? numbers[i] : halves[f == bf16 ? 0 : 1][i], f);
  }
};

/// The functions of the rule `exact`.
constexpr function functions[] = {
    function::exp,     function::exp2, function::expm1, function::log,       function::log2,
    function::log1p,   function::tanh, function::erf,   function::rsqrt,     function::reciprocal,
    function::sigmoid, function::silu, function::gelu,  function::gelu_tanh, function::softplus};

bool takes_magnitudes(function f) {
  return f == function::log || f == function::log2 || f == function::log1p ||
         f == function::rsqrt || f == function::reciprocal;
}

void add_functions(std::vector<work>& list, const buffers& b, format_id from, format_id to,
                   function_rule rule = function_rule::exact) {
  const auto bytes = static_cast<double>(b.elements);
  const std::string formats = " " + std::string(name(from)) + " to " + std::string(name(to)) +
                              (rule == function_rule::exact ? "" : ", torch_2_11");
  for (const function f : functions) {
    const const_matrix_view in = b.operand(from, takes_magnitudes(f));
    const matrix_view out = b.view(b.out, to);
    list.push_back({std::string(name(f)) + formats,
                    bytes * (storage_bytes(from) + storage_bytes(to)), [=](cudaStream_t stream) {
                      evaluate(f, in, out, {.rule = rule}, on_stream(stream, "cuda-native"));
                    }});
  }
}

void add_gradients(std::vector<work>& list, const buffers& b, format_id format) {
  const auto bytes = static_cast<double>(b.elements);
  for (const function f : {function::silu, function::gelu, function::gelu_tanh}) {
    const const_matrix_view in = b.operand(format, false);
    const const_matrix_view grad = format == fp32 ? b.view(b.grad, fp32) : in;
    const matrix_view out = b.view(b.out, format);
    list.push_back({std::string(name(f)) + " gradient " + std::string(name(format)),
                    bytes * 3 * storage_bytes(format), [=](cudaStream_t stream) {
                      evaluate_gradient(f, grad, in, out, {}, on_stream(stream, "cuda-native"));
                    }});
  }
}

void allocate(buffers& b) {
  const auto count = static_cast<std::size_t>(b.elements);
  for (int i = 0; i < 2; ++i) {
    check(cudaMalloc(&b.numbers[i], 4 * count), "memory");
    fill<<<4096, 256>>>(static_cast<float*>(b.numbers[i]), b.elements, i == 1);
    check(cudaDeviceSynchronize(), "fill");
    for (const format_id f : {bf16, fp16}) {
      void*& half = b.halves[f == bf16 ? 0 : 1][i];
      check(cudaMalloc(&half, 2 * count), "memory");
      convert(b.view(b.numbers[i], fp32), b.view(half, f), {}, on_stream(nullptr));
    }
  }
  b.grad = b.numbers[1];
  check(cudaMalloc(&b.out, 4 * count), "memory");
  check(cudaDeviceSynchronize(), "convert");
}

std::vector<work> all_work(const buffers& b) {
  std::vector<work> list;
  list.push_back(copy_of(b.out, b.numbers[0], static_cast<std::size_t>(4 * b.elements)));
  add_functions(list, b, fp32, fp32);
  add_functions(list, b, bf16, bf16);
  add_functions(list, b, fp32, bf16);
  add_functions(list, b, fp16, fp16);
  for (const format_id f : {bf16, fp16}) add_functions(list, b, f, f, function_rule::torch_2_11);
  add_gradients(list, b, fp32);
  add_gradients(list, b, bf16);
  return list;
}

}  // namespace

int main(int argc, char** argv) {
  const bench_options options =
      options_of(argc, argv, "gpu_function_bench [--log2-elements 10..31] [--only TEXT]",
                 "--log2-elements", 28, 10, 31);
  buffers b{.elements = std::int64_t{1} << options.log2};
  allocate(b);
  run(all_work(b), options.only);
}
