// gpu_arithmetic_bench: times array arithmetic and reductions on a GPU beside a plain device copy.
//
//   gpu_arithmetic_bench [--log2-bytes N] [--only TEXT]      default 30: arrays of 1 GiB, all work
//
// Share of copy = (bytes a call must move / its time) / bandwidth of a copy. A call must read each
// operand once and write each result once. The copy is cudaMemcpyAsync between two device buffers
// in the same run; its bandwidth counts bytes read and bytes written. Figures are medians of 9
// rounds over all work. torch_bench.py --arith times PyTorch on arrays of the same size.
#include <cuda_runtime.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gpu_timing.hpp"
#include "samebits/samebits.hpp"

namespace {

using namespace samebits;
using namespace samebits::bench;
using enum format_id;

/// Fills words with random codes that have magnitudes around 1 in every format: the second highest
/// bit of every exponent field is 0.
__global__ void fill(std::uint32_t* words, std::int64_t count, std::uint64_t stream) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    words[i] = random_word(3, stream, static_cast<std::uint64_t>(i)) & 0xBFBFBFBFu;
  }
}

/// Device buffers that all work shares.
struct buffers {
  std::size_t bytes;  ///< of each of a, b, c and out
  void* a = nullptr;
  void* b = nullptr;
  void* c = nullptr;
  void* out = nullptr;
  void* workspace = nullptr;
  void* result = nullptr;

  [[nodiscard]] std::int64_t elements(format_id f) const {
    return static_cast<std::int64_t>(bytes) / storage_bytes(f);
  }
  [[nodiscard]] matrix_view view(void* data, format_id f) const {
    return on_device(view_of_codes(f, data, 1, elements(f)));
  }
};

void add_compute(std::vector<work>& list, const buffers& b, operation op, format_id f,
                 const compute_options& options, const char* backend) {
  const array_operands in{b.view(b.a, f), b.view(b.b, f), b.view(b.c, f)};
  const matrix_view out = b.view(b.out, f);
  std::string what = std::string(name(op)) + " " + std::string(name(f));
  if (options.rounding != rounding::nearest_even) what += " " + std::string(name(options.rounding));
  if (options.overflow != overflow::ieee) what += " " + std::string(name(options.overflow));
  list.push_back(
      {what + ", " + backend, static_cast<double>(b.bytes) * (operand_count(op) + 1),
       [=](cudaStream_t stream) { compute(op, in, out, options, on_stream(stream, backend)); }});
}

void add_reductions(std::vector<work>& list, const buffers& b, format_id f, const char* backend) {
  const const_matrix_view x = b.view(b.a, f), y = b.view(b.b, f);
  const std::span<std::byte> room(static_cast<std::byte*>(b.workspace), b.bytes / 64);
  auto* const sum_to = static_cast<double*>(b.result);
  auto* const amax_to = static_cast<float*>(b.result);
  auto* const counts_to = static_cast<element_counts*>(b.result);
  const auto add = [&](const char* what, int arrays, std::function<void(executor)> run) {
    list.push_back({std::string(what) + " " + std::string(name(f)) + ", " + backend,
                    static_cast<double>(b.bytes) * arrays,
                    [=](cudaStream_t stream) { run(on_stream(stream, backend)); }});
  };
  add("amax", 1, [=](executor where) { enqueue_amax(x, amax_to, where); });
  add("counts", 1, [=](executor where) { enqueue_counts(x, counts_to, where); });
  add("sum", 1, [=](executor where) { enqueue_sum(x, sum_to, room, where); });
  add("sum_of_squares", 1, [=](executor where) { enqueue_sum_of_squares(x, sum_to, room, where); });
  add("dot", 2, [=](executor where) { enqueue_dot(x, y, sum_to, {}, room, where); });
  add("dot in fp32", 2,
      [=](executor where) { enqueue_dot(x, y, sum_to, {accumulation::fp32}, room, where); });
}

std::vector<work> all_work(const buffers& b) {
  std::vector<work> list;
  list.push_back(copy_of(b.out, b.a, b.bytes));
  for (const format_id f : {fp32, fp16, bf16, e4m3, e5m2}) {
    for (const operation op : {operation::add, operation::mul, operation::fma, operation::div,
                               operation::sqrt, operation::max}) {
      add_compute(list, b, op, f, {}, "cuda-native");
    }
    for (const operation op : {operation::add, operation::fma}) {
      add_compute(list, b, op, f, {.overflow = overflow::saturate}, "cuda-native");
    }
  }
  for (const format_id f : {fp32, fp16, bf16, e4m3, e5m2}) {
    add_reductions(list, b, f, "cuda-native");
  }
  for (const format_id f : {bf16, e4m3}) {
    for (const operation op : {operation::add, operation::fma}) {
      add_compute(list, b, op, f, {}, "cuda-emulated");
      add_compute(list, b, op, f, {.rounding = rounding::stochastic, .random = {.seed = 1}},
                  "cuda-emulated");
    }
  }
  add_reductions(list, b, bf16, "cuda-emulated");
  return list;
}

}  // namespace

int main(int argc, char** argv) {
  const bench_options options =
      options_of(argc, argv, "gpu_arithmetic_bench [--log2-bytes 16..33] [--only TEXT]",
                 "--log2-bytes", 30, 16, 33);
  buffers b{.bytes = std::size_t{1} << options.log2};
  for (void** p : {&b.a, &b.b, &b.c, &b.out}) check(cudaMalloc(p, b.bytes), "memory");
  check(cudaMalloc(&b.workspace, b.bytes / 64), "memory");
  check(cudaMalloc(&b.result, 256), "memory");
  std::uint64_t seed = 0;
  for (void* p : {b.a, b.b, b.c}) {
    fill<<<4096, 256>>>(static_cast<std::uint32_t*>(p), static_cast<std::int64_t>(b.bytes) / 4,
                        seed++);
  }
  check(cudaDeviceSynchronize(), "fill");
  run(all_work(b), options.only);
}
