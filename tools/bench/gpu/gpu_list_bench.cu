// gpu_list_bench: times operations over lists of tensors, the gradients and weights of a model, on
// a GPU beside a plain device copy.
//
//   gpu_list_bench [--only TEXT]
//
// The model has 1.31 billion parameters in 289 tensors (24 layers of width 2048 and an embedding).
// A second list has 10,000 tensors of 1,000 elements.
//
// Share of copy = (bytes an operation must move / its time) / bandwidth of a copy. An operation
// must read each element once, and write each changed element once. The copy is cudaMemcpyAsync
// between two device buffers in the same run. Figures are medians of 9 rounds over all work.
// torch_bench.py --lists times PyTorch on the same lists.
#include <cuda_runtime.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu_timing.hpp"
#include "samebits/device_loss_scaler.hpp"
#include "samebits/samebits.hpp"

namespace {

using namespace samebits;
using namespace samebits::bench;

/// Fills words with random codes that are finite in every format: the second highest bit of every
/// exponent field is 0.
__global__ void fill(std::uint32_t* words, std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    words[i] = random_word(3, 0, static_cast<std::uint64_t>(i)) & 0xBBFFBBFFu;
  }
}

/// A list of tensors one after another in `memory`, each at a multiple of 256 bytes, with the
/// formats in turn.
tensor_list list_in(void* memory, const std::vector<std::int64_t>& sizes,
                    const std::vector<format_id>& formats) {
  std::vector<list_tensor> tensors;
  auto* at = static_cast<std::byte*>(memory);
  for (const std::int64_t n : sizes) {
    const format_id format = formats[tensors.size() % formats.size()];
    tensors.push_back({{at, format, 1, n, n, 1, memory_space::device}});
    at += (n * storage_bytes(format) + 255) / 256 * 256;
  }
  return tensor_list(std::move(tensors));
}
tensor_list list_in(void* memory, const std::vector<std::int64_t>& sizes, format_id format) {
  return list_in(memory, sizes, std::vector{format});
}

/// The model's weights as matrices, with outputs for e4m3 codes and for the scales of each tile
/// under the scale rule `rule`.
quantize_list quantize_list_in(void* weights, format_id from, void* out, tile_shape tile,
                               scale_rule rule) {
  constexpr std::int64_t d = 2048;
  const format_id scale_format = is_mx(rule) ? format_id::e8m0 : format_id::fp32;
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
                       {.tile = tile, .scale = rule, .nonfinite = nonfinite::skip_nan});
}

/// Bytes that the quantization of a list must read and write.
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

/// The work to time, in two buffers that all work shares. Only operations whose names contain
/// `only` are added.
struct bench_lists {
  void* first;
  void* second;
  std::string only;
  std::vector<work> list = {};
  std::vector<std::unique_ptr<device_loss_scaler>> scalers = {};
  std::vector<std::int64_t> model = model_sizes();
  std::vector<std::int64_t> small = std::vector<std::int64_t>(10'000, 1000);

  void add(const std::string& name, double bytes, std::function<void(cudaStream_t)> run) {
    if (name.find(only) != std::string::npos) list.push_back({name, bytes, std::move(run)});
  }
};

executor native(cudaStream_t stream) { return on_stream(stream, "cuda-native"); }

std::string tensors(std::size_t count) { return ", " + std::to_string(count) + " tensors"; }

void add_scaler(bench_lists& b, format_id f, const std::vector<std::int64_t>& sizes, bool alone) {
  const tensor_list list = list_in(b.first, sizes, f);
  const double bytes = static_cast<double>(list.elements()) * storage_bytes(f);
  const std::string of = ", " + std::string(name(f)) + tensors(sizes.size());
  device_loss_scaler& scaler = *b.scalers.emplace_back(std::make_unique<device_loss_scaler>(list));
  if (alone) b.add("inspect" + of, bytes, [&scaler](cudaStream_t s) { scaler.inspect(s); });
  b.add("inspect and decide" + of, bytes, [&scaler](cudaStream_t s) { scaler.step(s); });
}

void add_elementwise(bench_lists& b, format_id f) {
  const tensor_list list = list_in(b.first, b.model, f);
  const tensor_list sums = list_in(b.second, b.model, format_id::fp32);
  const auto elements = static_cast<double>(list.elements());
  const std::string of = ", " + std::string(name(f)) + tensors(list.size());
  b.add("scale" + of, 2 * elements * storage_bytes(f),
        [=](cudaStream_t s) { scale(list, 1.0f, native(s)); });
  b.add("accumulate into fp32" + of, elements * (storage_bytes(f) + 8),
        [=](cudaStream_t s) { accumulate(sums, list, {}, native(s)); });
}

void add_cast(bench_lists& b, const std::vector<format_id>& from, const std::string& named,
              format_id to, const std::vector<std::int64_t>& sizes,
              const convert_options& options = {}) {
  const tensor_list in = list_in(b.first, sizes, from), out = list_in(b.second, sizes, to);
  double bytes = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const matrix_view& v = in[i].view;
    bytes += static_cast<double>(v.rows * v.cols) * (storage_bytes(v.format) + storage_bytes(to));
  }
  b.add("cast " + named + " to " + std::string(name(to)) +
            (options.rounding == rounding::stochastic
                 ? ", stochastic K=" + std::to_string(options.random.bits)
                 : "") +
            tensors(sizes.size()),
        bytes, [=](cudaStream_t s) { cast(in, out, options, native(s)); });
}

void add_casts(bench_lists& b) {
  using enum format_id;
  const convert_options stochastic{.rounding = rounding::stochastic, .random = {.bits = 16}};
  for (const auto& [from, to] :
       {std::pair{fp32, bf16}, {fp32, fp16}, {bf16, fp32}, {fp16, fp32}, {fp32, e4m3}}) {
    add_cast(b, {from}, std::string(name(from)), to, b.model);
  }
  add_cast(b, {fp32}, "fp32", bf16, b.model, stochastic);
  add_cast(b, {fp32}, "fp32", bf16, b.small);
  add_cast(b, {fp32}, "fp32", bf16, b.small, stochastic);
  add_cast(b, {fp32, fp16, bf16}, "fp32, fp16 and bf16 in turn", bf16, b.model);
}

void add_quantize(bench_lists& b, format_id from, tile_shape tile, scale_rule rule,
                  const char* what) {
  const quantize_list weights = quantize_list_in(b.first, from, b.second, tile, rule);
  b.add("quantize " + std::string(name(from)) + " to e4m3, " + what + tensors(weights.size()),
        bytes_of(weights), [=](cudaStream_t s) { quantize(weights, native(s)); });
}

void add_all(bench_lists& b) {
  using enum format_id;
  for (const format_id f : {fp32, fp16, bf16}) {
    add_scaler(b, f, b.model, true);
    add_elementwise(b, f);
  }
  for (const format_id f : {fp32, fp16}) add_scaler(b, f, b.small, false);
  add_casts(b);
  add_quantize(b, bf16, {1, 32}, scale_rule::mx_rceil, "MXFP8 1x32 RCEIL");
  for (const format_id from : {bf16, fp32}) {
    add_quantize(b, from, {1, 128}, scale_rule::te, "1x128 te");
    add_quantize(b, from, {128, 128}, scale_rule::te, "128x128 te");
    add_quantize(b, from, {128, 1}, scale_rule::te, "128x1 te");
    add_quantize(b, from, {1, 0}, scale_rule::te, "per row te");
  }
  add_quantize(b, bf16, {1, 128}, scale_rule::div, "1x128 div");
  add_quantize(b, bf16, {1, 0}, scale_rule::div, "per row div");
  add_quantize(b, bf16, {0, 0}, scale_rule::te, "per tensor te");
}

}  // namespace

int main(int argc, char** argv) {
  const bench_options options = options_of(argc, argv, "gpu_list_bench [--only TEXT]");
  initialize("cuda-native");
  constexpr std::size_t room = std::size_t{6} << 30;
  bench_lists b{.first = nullptr, .second = nullptr, .only = options.only};
  for (void** p : {&b.first, &b.second}) {
    check(cudaMalloc(p, room), "cudaMalloc");
    fill<<<1024, 256>>>(static_cast<std::uint32_t*>(*p), room / 4);
  }
  check(cudaDeviceSynchronize(), "fill");
  b.list.push_back(copy_of(b.second, b.first, room / 2));
  add_all(b);
  run(b.list, options.only);
}
