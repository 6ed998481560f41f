// gpu_plan_bench: operations over the gradients of a model on a GPU beside a plain device copy.
//
//   gpu_plan_bench [--only TEXT]
//
// The model has 1.31 billion parameters in 289 tensors (24 layers of width 2048 and an embedding);
// a second list has 10,000 tensors of 1,000 elements. Share of copy = bytes an operation must move
// (each element read once, and written once where it is) per second, over the bandwidth of
// cudaMemcpyAsync between two device buffers in the same run; medians of 9 rounds over all work.
// torch_bench.py --plans times PyTorch on the same lists.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "samebits/device_scaler.hpp"
#include "samebits/samebits.hpp"

namespace {

using namespace samebits;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "gpu_plan_bench: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

/// Elements of each tensor: per layer attention, projection and two layers of the feed-forward
/// block with their biases, and two normalisations.
std::vector<std::int64_t> model_sizes() {
  constexpr std::int64_t d = 2048, layers = 24, words = 50304;
  std::vector<std::int64_t> sizes = {words * d};
  for (int layer = 0; layer < layers; ++layer) {
    for (const std::int64_t n :
         {3 * d * d, d * d, 4 * d * d, 4 * d * d, 3 * d, d, 4 * d, d, d, d, d, d}) {
      sizes.push_back(n);
    }
  }
  return sizes;
}

/// Finite bits in every format: no exponent has its second highest bit.
__global__ void fill(std::uint32_t* words, std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    words[i] = random_word(3, 0, static_cast<std::uint64_t>(i)) & 0xBBFFBBFFu;
  }
}

/// A list of tensors one after another in memory, each on a border of 256 bytes; formats in turn.
tensor_plan list_in(void* memory, const std::vector<std::int64_t>& sizes,
                    const std::vector<format_id>& formats) {
  std::vector<plan_tensor> tensors;
  auto* at = static_cast<std::byte*>(memory);
  for (const std::int64_t n : sizes) {
    const format_id format = formats[tensors.size() % formats.size()];
    tensors.push_back({{at, format, 1, n, n, 1, memory_space::device}});
    at += (n * storage_bytes(format) + 255) / 256 * 256;
  }
  return tensor_plan(std::move(tensors));
}
tensor_plan list_in(void* memory, const std::vector<std::int64_t>& sizes, format_id format) {
  return list_in(memory, sizes, std::vector{format});
}

/// The model's weights as matrices, and room for e4m3 codes and scales of `math` by tiles.
quantize_list quantize_list_in(void* weights, format_id from, void* out, tile_shape tile,
                               scale_math math) {
  constexpr std::int64_t d = 2048;
  const format_id scale_format = is_mx(math) ? format_id::e8m0 : format_id::fp32;
  std::vector<quantize_item> items;
  auto* in = static_cast<std::byte*>(weights);
  auto* at = static_cast<std::byte*>(out);
  const auto placed = [&](format_id f, std::int64_t rows, std::int64_t cols) {
    const matrix_view v{at, f, rows, cols, cols, 1, memory_space::device};
    at += (rows * cols * storage_bytes(f) + 255) / 256 * 256;
    return v;
  };
  for (const std::int64_t n : model_sizes()) {
    const std::int64_t cols = n < d * d ? n : n == 4 * d * d && items.size() % 2 == 0 ? 4 * d : d;
    const std::int64_t rows = n / cols;
    const matrix_shape grid = scales_shape(rows, cols, tile);
    items.push_back({.in = {in, from, rows, cols, cols, 1, memory_space::device},
                     .outputs = {.codes = placed(format_id::e4m3, rows, cols),
                                 .scales = placed(scale_format, grid.rows, grid.cols)}});
    in += (n * storage_bytes(from) + 255) / 256 * 256;
  }
  return quantize_list(std::move(items),
                       {.tile = tile, .math = math, .on_nonfinite = nonfinite::skip_nan});
}

/// Bytes that a list's quantization must read and write.
double bytes_of(const quantize_list& list) {
  double bytes = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const const_matrix_view& in = list[i].in;
    const matrix_view& s = list[i].outputs.scales;
    bytes += static_cast<double>(in.rows * in.cols * (storage_bytes(in.format) + 1) +
                                 s.rows * s.cols * storage_bytes(s.format));
  }
  return bytes;
}

struct work {
  std::string name;
  double bytes;
  std::function<void()> run;
  std::vector<float> ms;
};

float median(std::vector<float> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

void time_rounds(std::vector<work>& list, cudaStream_t stream) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  for (int round = 0; round < 10; ++round) {
    for (work& w : list) {
      check(cudaEventRecord(begin, stream), "record");
      w.run();
      check(cudaEventRecord(end, stream), "record");
      check(cudaEventSynchronize(end), w.name.c_str());
      float ms = 0;
      check(cudaEventElapsedTime(&ms, begin, end), "time");
      if (round > 0) w.ms.push_back(ms);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* only = "";
  if (argc == 3 && std::strcmp(argv[1], "--only") == 0) {
    only = argv[2];
  } else if (argc != 1) {
    std::fprintf(stderr, "usage: gpu_plan_bench [--only TEXT]\n");
    return 2;
  }
  initialize("cuda-native");
  const std::vector<std::int64_t> model = model_sizes();
  const std::vector<std::int64_t> small(10'000, 1000);
  constexpr std::size_t room = std::size_t{6} << 30;
  void *first = nullptr, *second = nullptr;
  check(cudaMalloc(&first, room), "cudaMalloc");
  check(cudaMalloc(&second, room), "cudaMalloc");
  fill<<<1024, 256>>>(static_cast<std::uint32_t*>(first), room / 4);
  fill<<<1024, 256>>>(static_cast<std::uint32_t*>(second), room / 4);
  check(cudaDeviceSynchronize(), "fill");
  cudaStream_t stream;
  check(cudaStreamCreate(&stream), "stream");
  const executor here = on_stream(stream, "cuda-native");

  std::vector<std::unique_ptr<device_loss_scaler>> scalers;
  std::vector<work> list;
  list.push_back(
      {"copy", 2.0 * room / 2, [=] {
         check(cudaMemcpyAsync(second, first, room / 2, cudaMemcpyDeviceToDevice, stream), "copy");
       }});
  const auto add = [&](std::string name, double bytes, std::function<void()> run) {
    if (name.find(only) != std::string::npos)
      list.push_back({std::move(name), bytes, std::move(run)});
  };
  for (const format_id f : {format_id::fp32, format_id::fp16, format_id::bf16}) {
    const tensor_plan plan = list_in(first, model, f);
    const double bytes = static_cast<double>(plan.elements()) * storage_bytes(f);
    const std::string of = ", " + std::string(name(f)) + ", 289 tensors";
    device_loss_scaler& scaler = *scalers.emplace_back(std::make_unique<device_loss_scaler>(plan));
    add("inspect" + of, bytes, [&scaler, stream] { scaler.inspect(stream); });
    add("inspect and decide" + of, bytes, [&scaler, stream] { scaler.step(stream); });
    add("scale" + of, 2 * bytes, [=] { scale(plan, 1.0f, here); });
    const tensor_plan sums = list_in(second, model, format_id::fp32);
    add("accumulate into fp32" + of, bytes + 8.0 * static_cast<double>(plan.elements()),
        [=] { accumulate(sums, plan, {}, here); });
  }
  for (const format_id f : {format_id::fp32, format_id::fp16}) {
    const tensor_plan plan = list_in(first, small, f);
    device_loss_scaler& scaler = *scalers.emplace_back(std::make_unique<device_loss_scaler>(plan));
    add("inspect and decide, " + std::string(name(f)) + ", 10000 tensors",
        static_cast<double>(plan.elements()) * storage_bytes(f),
        [&scaler, stream] { scaler.step(stream); });
  }
  for (const auto& [from, to, what] :
       {std::tuple<format_id, format_id, const std::vector<std::int64_t>*>{format_id::fp32,
                                                                           format_id::bf16, &model},
        {format_id::fp32, format_id::fp16, &model},
        {format_id::bf16, format_id::fp32, &model},
        {format_id::fp16, format_id::fp32, &model},
        {format_id::fp32, format_id::e4m3, &model},
        {format_id::fp32, format_id::bf16, &small}}) {
    const tensor_plan in = list_in(first, *what, from), out = list_in(second, *what, to);
    const std::string of = std::string(name(from)) + " to " + std::string(name(to));
    const std::string tensors = ", " + std::to_string(what->size()) + " tensors";
    const double bytes =
        static_cast<double>(in.elements()) * (storage_bytes(from) + storage_bytes(to));
    add("cast " + of + tensors, bytes, [=] { cast(in, out, {}, here); });
    if (from != format_id::fp32 || to != format_id::bf16) continue;
    add("cast " + of + ", stochastic K=16" + tensors, bytes,
        [=] { cast(in, out, {.round = rounding::stochastic, .random = {.bits = 16}}, here); });
  }
  {
    const tensor_plan in = list_in(first, model,
                                   {format_id::fp32, format_id::fp16, format_id::bf16}),
                      out = list_in(second, model, format_id::bf16);
    double bytes = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const matrix_view& v = in[i].view;
      bytes += static_cast<double>(v.cols) * (storage_bytes(v.format) + 2);
    }
    add("cast fp32, fp16 and bf16 in turn to bf16, 289 tensors", bytes,
        [=] { cast(in, out, {}, here); });
  }
  const auto add_quantize = [&](format_id from, tile_shape tile, scale_math math,
                                const char* what) {
    const quantize_list weights = quantize_list_in(first, from, second, tile, math);
    add("quantize " + std::string(name(from)) + " to e4m3, " + what + ", 289 tensors",
        bytes_of(weights), [=] { quantize(weights, here); });
  };
  add_quantize(format_id::bf16, {1, 32}, scale_math::mx_rceil, "MXFP8 1x32 RCEIL");
  for (const format_id from : {format_id::bf16, format_id::fp32}) {
    add_quantize(from, {1, 128}, scale_math::te, "1x128 te");
    add_quantize(from, {128, 128}, scale_math::te, "128x128 te");
    add_quantize(from, {128, 1}, scale_math::te, "128x1 te");
    add_quantize(from, {1, 0}, scale_math::te, "per row te");
  }
  add_quantize(format_id::bf16, {1, 128}, scale_math::div, "1x128 div");
  add_quantize(format_id::bf16, {1, 0}, scale_math::div, "per row div");
  add_quantize(format_id::bf16, {0, 0}, scale_math::te, "per tensor te");
  time_rounds(list, stream);
  const double copy = list[0].bytes / median(list[0].ms);
  std::printf("| work | ms | GB/s | share of copy |\n|---|---|---|---|\n");
  for (const work& w : list) {
    const double rate = w.bytes / median(w.ms);
    std::printf("| %s | %.4f | %.0f | %.3f |\n", w.name.c_str(), static_cast<double>(median(w.ms)),
                rate / 1e6, rate / copy);
  }
  return 0;
}
