// gpu_bench: times array conversion and quantization on a GPU beside a plain device copy, with CUDA
// events.
//
//   gpu_bench [--json FILE] [--log2-elements N] [--only TEXT]      default 30, all work
//
// Share of copy = (bytes a conversion must move / its time) / bandwidth of a copy. A conversion
// must read each input once and write each result once. The copy is cudaMemcpyAsync between two
// device buffers in the same run. Each figure is the median of several rounds over all work, the
// copy included.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "gpu_timing.hpp"
#include "samebits/samebits.hpp"

namespace {

using namespace samebits;
using namespace samebits::bench;

/// Fills words with random magnitudes from 2^-16 to 2^8, all exponents equally likely. This holds
/// for the word as binary32 and for its two halves as bf16.
__global__ void fill_wide(std::uint32_t* words, std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const std::uint32_t r = random_word(1, 0, static_cast<std::uint64_t>(i));
    const std::uint32_t high = (r & 0x807F0000u) | (127 - 16 + (r >> 8) % 24) << 23;
    const std::uint32_t low = (r & 0x807Fu) | (127 - 16 + (r >> 16) % 24) << 7;
    words[i] = high | low;
  }
}

/// Fills words with two normally distributed bf16 numbers each (Box and Muller, 1958).
__global__ void fill_normal(std::uint32_t* words, std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const auto uniform = [i](std::uint64_t stream) {  // in (0, 1)
      const std::uint32_t r = random_word(2, stream, static_cast<std::uint64_t>(i));
      return (static_cast<float>(r >> 9) + 0.5f) * 0x1p-23f;
    };
    const float radius = sqrtf(-2 * logf(uniform(0))), turns = 2 * uniform(1);
    words[i] = (__float_as_uint(radius * cospif(turns)) & 0xFFFF0000u) |
               __float_as_uint(radius * sinpif(turns)) >> 16;
  }
}

/// Device buffers that all work shares.
struct buffers {
  void* in = nullptr;      ///< fill_wide
  void* normal = nullptr;  ///< fill_normal
  void* out = nullptr;
  void* scales = nullptr;
  void* transposed = nullptr;
  quantize_statistics* statistics = nullptr;
  float* tensor_scale = nullptr;
  std::int64_t count = 0;
};

/// Adds a conversion.
void add(std::vector<work>& list, const buffers& b, std::string_view backend, format_id from,
         format_id to, const convert_options& options) {
  const const_matrix_view in{b.in, from, 1, b.count, b.count, 1, memory_space::device};
  const matrix_view out{b.out, to, 1, b.count, b.count, 1, memory_space::device};
  std::string what = std::string(name(from)) + " to " + std::string(name(to)) + ", " +
                     std::string(name(options.rounding));
  if (options.rounding == rounding::stochastic) what += " K=" + std::to_string(options.random.bits);
  if (options.overflow != overflow::ieee) what += " " + std::string(name(options.overflow));
  list.push_back(
      {what + ", " + std::string(backend),
       static_cast<double>(b.count) * (storage_bytes(from) + storage_bytes(to)),
       [=](cudaStream_t stream) { convert(in, out, options, on_stream(stream, backend)); },
       {}});
}

/// Outputs of a quantization.
enum class wanted { codes, transposed, both, statistics };

/// Adds a quantization. The matrix has rows of `width` elements; if width is 0, the matrix is as square
/// as powers of two allow.
void add_quantize(std::vector<work>& list, const buffers& b, const void* data, tile_shape tile,
                  const std::string& what, quantize_options options, wanted outputs = wanted::codes,
                  std::int64_t width = 0, format_id scales = format_id::fp32,
                  format_id from = format_id::bf16, format_id to = format_id::e4m3) {
  std::int64_t rows = 1;
  while (rows * rows < b.count) rows *= 2;
  if (width != 0) rows = b.count / width;
  const std::int64_t cols = b.count / rows;
  options.tile = tile;
  const matrix_shape grid = scales_shape(rows, cols, tile);
  const auto view = [](void* p, format_id f, std::int64_t r, std::int64_t c) {
    return matrix_view{p, f, r, c, c, 1, memory_space::device};
  };
  const const_matrix_view in = view(const_cast<void*>(data), from, rows, cols);
  quantize_outputs o{.scales = view(b.scales, scales, grid.rows, grid.cols)};
  if (outputs != wanted::transposed) o.codes = view(b.out, to, rows, cols);
  if (outputs == wanted::statistics) o.statistics = b.statistics;
  if (outputs == wanted::transposed || outputs == wanted::both)
    o.codes_transposed = view(b.transposed, to, cols, rows);
  if (has_two_levels(options.scale)) o.tensor_scale = view(b.tensor_scale, format_id::fp32, 1, 1);
  const std::size_t needed = quantize_workspace(in, o, options, on_stream(nullptr));
  if (needed > 0) {  // else the allocation would be timed
    void* workspace = nullptr;
    check(cudaMalloc(&workspace, needed), "memory");
    options.workspace = {static_cast<std::byte*>(workspace), needed};
  }
  const int codes = outputs == wanted::both ? 2 : 1;
  const double bytes = static_cast<double>(b.count) * (storage_bytes(from) + codes) +
                       storage_bytes(scales) * static_cast<double>(grid.rows * grid.cols);
  list.push_back(
      {"quantize " + std::string(name(from)) + " to " + std::string(name(to)) + ", " + what,
       bytes,
       [=](cudaStream_t stream) { quantize(in, o, options, on_stream(stream)); },
       {}});
}

void add_quantizations(std::vector<work>& list, const buffers& b) {
  const auto normal = [&](tile_shape tile, const char* what, const quantize_options& options = {},
                          wanted outputs = wanted::codes) {
    add_quantize(list, b, b.normal, tile, what, options, outputs);
  };
  normal({1, 128}, "1x128 te");
  normal({1, 128}, "1x128 div", {.scale = scale_rule::div});
  normal({1, 128}, "1x128 rcp", {.scale = scale_rule::rcp});
  normal({1, 128}, "1x128 pow2", {.scale = scale_rule::pow2});
  normal({1, 32}, "1x32 te");
  normal({1, 256}, "1x256 te");
  normal({128, 128}, "128x128 te");
  normal({128, 128}, "128x128 div", {.scale = scale_rule::div});
  normal({32, 32}, "32x32 te");
  normal({128, 1}, "128x1 te");
  normal({1, 128}, "1x128 te, transposed", {}, wanted::transposed);
  normal({1, 128}, "1x128 te, and transposed", {}, wanted::both);
  normal({128, 128}, "128x128 te, and transposed", {}, wanted::both);
  normal({1, 128}, "1x128 te, with statistics", {}, wanted::statistics);
  normal({128, 128}, "128x128 te, with statistics", {}, wanted::statistics);
  normal({1, 32}, "1x32 te, with statistics", {}, wanted::statistics);
  normal({32, 32}, "32x32 te, with statistics", {}, wanted::statistics);
  add_quantize(list, b, b.in, {1, 128}, "1x128 te, wide values, with statistics", {},
               wanted::statistics, 0, format_id::fp32, format_id::fp32);
  normal({0, 0}, "per tensor te");
  for (const auto& [tile, what] : {std::pair<tile_shape, const char*>{{1, 32}, "1x32"},
                                   {{32, 1}, "32x1"},
                                   {{32, 32}, "32x32"}}) {
    add_quantize(list, b, b.normal, tile, std::string("MXFP8 ") + what + " RCEIL, e8m0 scales",
                 {.scale = scale_rule::mx_rceil, .nonfinite = nonfinite::skip_nan}, wanted::codes,
                 0, format_id::e8m0);
  }
  for (const std::int64_t width : {512, 2048, 4096, 5120, 8192, 16384, 65536}) {
    add_quantize(list, b, b.normal, {1, 0}, "row of " + std::to_string(width) + " te", {},
                 wanted::codes, width);
  }
  add_quantize(list, b, b.normal, {1, 0}, "row of 4096 div", {.scale = scale_rule::div},
               wanted::codes, 4096);
  normal({1, 128}, "1x128 dg_cuda, ieee",
         {.scale = scale_rule::dg_cuda, .overflow = overflow::ieee});
  for (const auto& [data, values] : {std::pair{b.normal, ""}, {b.in, ", wide values"}}) {
    for (const int k : {8, 16, 32}) {
      add_quantize(list, b, data, {1, 128}, "1x128 te, stochastic K=" + std::to_string(k) + values,
                   {.rounding = rounding::stochastic, .random = {.seed = 1, .bits = k}});
    }
  }
}

/// Presets of microscaling and NVFP4.
void add_presets(std::vector<work>& list, const buffers& b) {
  for (const char* preset : {"MXFP8_TE", "MXFP8_FLOOR", "MXFP4_FLOOR", "MXFP4_RCEIL", "NVFP4_TE",
                             "NVFP4_TE_2D", "NVFP4_TORCHAO", "NVFP4_TE_4OVER6"}) {
    const recipe& r = find_recipe(preset)->rules;
    add_quantize(list, b, b.normal, r.tile, preset, options_of(r), wanted::codes, 0, r.scale_format,
                 format_id::bf16, r.code_format);
  }
}

/// Adds dequantizations of codebooks, with any bits as codes, and a quantization.
void add_codebooks(std::vector<work>& list, const buffers& b) {
  const std::int64_t blocks = b.count / 64;
  const auto view = [&](void* data, format_id format) {
    return matrix_view{data, format, 1, b.count, b.count, 1, memory_space::device};
  };
  const auto floats = [&](std::int64_t count) {
    return std::span(static_cast<float*>(b.scales), static_cast<std::size_t>(count));
  };
  const auto bytes = [](void* data, std::int64_t count) {
    return std::span(static_cast<std::uint8_t*>(data), static_cast<std::size_t>(count));
  };
  for (const codebook book : {codebook::nf4, codebook::dynamic8}) {
    const codebook_options o = {.book = book};
    const std::int64_t size = codebook_bytes(book, b.count);
    const std::string of = std::string(name(book)) + ", blocks of 64";
    const auto codes = bytes(b.in, size);
    for (const format_id to : {format_id::bf16, format_id::fp16, format_id::fp32}) {
      const matrix_view out = view(b.out, to);
      const double moved = static_cast<double>(size + b.count * storage_bytes(to));
      const std::string what = "dequantize to " + std::string(name(to)) + ", " + of;
      list.push_back({what, moved + 4 * static_cast<double>(blocks), [=](cudaStream_t stream) {
                        dequantize_blocks(codes, floats(blocks), o, out, on_stream(stream));
                      }});
      const std::int64_t outer = (blocks + 255) / 256;
      const quantized_absmax absmax = {bytes(b.transposed, blocks), floats(outer)};
      list.push_back({what + ", double", moved + static_cast<double>(blocks + 4 * outer),
                      [=](cudaStream_t stream) {
                        dequantize_blocks(codes, absmax, o, out, on_stream(stream));
                      }});
    }
    list.push_back({"quantize bf16, " + of, static_cast<double>(size + 2 * b.count + 4 * blocks),
                    [=](cudaStream_t stream) {
                      quantize_blocks(view(b.normal, format_id::bf16), o, bytes(b.out, size),
                                      floats(blocks), on_stream(stream));
                    }});
  }
}

std::vector<work> all_work(const buffers& b) {
  using enum format_id;
  std::vector<work> list;
  list.push_back(copy_of(b.out, b.in, static_cast<std::size_t>(b.count) * 4));
  const auto both = [&](format_id from, format_id to, const convert_options& o) {
    add(list, b, "cuda-native", from, to, o);
    add(list, b, "cuda-emulated", from, to, o);
  };
  const convert_options saturate{.overflow = overflow::saturate};
  for (const format_id to : {fp16, bf16, e4m3, e5m2}) both(fp32, to, {});
  for (const format_id from : {fp32, bf16, fp16}) both(from, e4m3, saturate);
  both(bf16, e5m2, saturate);
  add(list, b, "cuda-emulated", e4m3, fp32, {});
  add(list, b, "cuda-emulated", e4m3, bf16, {});
  add(list, b, "cuda-emulated", fp32, e4m3, {.rounding = rounding::toward_zero});
  add(list, b, "cuda-emulated", fp32, e2m1, {});
  for (const int k : {8, 16, 32}) {
    for (const auto& [from, to] :
         {std::pair{fp32, bf16}, {fp32, fp16}, {fp32, e4m3}, {bf16, e4m3}, {fp16, e4m3}}) {
      add(list, b, "cuda-emulated", from, to,
          {.rounding = rounding::stochastic, .random = {.seed = 1, .bits = k}});
    }
  }
  add_quantizations(list, b);
  add_presets(list, b);
  add_codebooks(list, b);
  return list;
}

}  // namespace

int main(int argc, char** argv) {
  const bench_options options =
      options_of(argc, argv, "gpu_bench [--json FILE] [--log2-elements 10..33] [--only TEXT]",
                 "--log2-elements", 30, 10, 33);
  buffers b;
  b.count = std::int64_t{1} << options.log2;
  check(cudaMalloc(&b.in, static_cast<std::size_t>(b.count) * 4), "memory");
  check(cudaMalloc(&b.out, static_cast<std::size_t>(b.count) * 4), "memory");
  check(cudaMalloc(&b.scales, static_cast<std::size_t>(b.count) / 4), "memory");
  check(cudaMalloc(&b.transposed, static_cast<std::size_t>(b.count)), "memory");
  check(cudaMalloc(&b.statistics, sizeof(quantize_statistics)), "memory");
  check(cudaMalloc(&b.tensor_scale, sizeof(float)), "memory");
  check(cudaMalloc(&b.normal, static_cast<std::size_t>(b.count) * 2), "memory");
  fill_wide<<<4096, 256>>>(static_cast<std::uint32_t*>(b.in), b.count);
  fill_normal<<<4096, 256>>>(static_cast<std::uint32_t*>(b.normal), b.count / 2);
  check(cudaDeviceSynchronize(), "fill");
  std::FILE* json = options.json != nullptr ? std::fopen(options.json, "w") : nullptr;
  if (options.json != nullptr && json == nullptr) {
    std::perror(options.json);
    return 1;
  }
  run(all_work(b), options.only, json);
  if (json != nullptr) std::fclose(json);
}
