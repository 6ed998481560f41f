// gpu_optimizer_bench: times optimizer steps on a GPU beside a plain device copy.
//
//   gpu_optimizer_bench [--only TEXT]
//
// The model has 1.31 billion parameters in 289 tensors (24 layers of width 2048 and an embedding).
// A second list has 10,000 tensors of 1,000 elements. Backend: cuda-native.
//
// Share of copy = (bytes that a step must move / its time) / bandwidth of a copy. A step must read
// gradients, weights and states once, and write weights and states once. The copy is cudaMemcpyAsync
// between two device buffers in the same run. Figures are medians of 9 rounds over all work.
#include <cuda_runtime.h>

#include <string>
#include <utility>
#include <vector>

#include "gpu_timing.hpp"
#include "samebits/optimizer.hpp"
#include "samebits/samebits.hpp"

namespace {

using namespace samebits;
using namespace samebits::bench;
using enum stored_format;

/// Fills words with random codes of positive numbers around 1/128 in fp32 and bf16, above 1 in fp16,
/// and of any positive numbers in FP8.
__global__ void fill(std::uint32_t* words, std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const std::uint32_t bits = random_word(3, 0, static_cast<std::uint64_t>(i));
    words[i] = (bits & 0x017E017Eu) | 0x3C003C00u;
  }
}
__global__ void fill_ones(float* words, std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    words[i] = 1.0f;
  }
}

/// The arrays that all work shares: as large as the largest array of its kind.
struct memory {
  static constexpr std::size_t wide = std::size_t{1'320'000'000} * 4;  ///< bytes
  static constexpr std::size_t half = wide / 2, scales_bytes = wide / 128;

  std::byte* weights;
  std::byte* gradient;
  std::byte* master;
  std::byte* states[2];
  std::byte* low;
  float* scales[2];

  void allocate() {
    const auto take = [](auto& pointer, std::size_t bytes) {
      check(cudaMalloc(reinterpret_cast<void**>(&pointer), bytes), "cudaMalloc");
    };
    for (std::byte** p : {&weights, &gradient, &master, &states[0], &states[1]}) take(*p, wide);
    take(low, half);
    for (float** p : {&scales[0], &scales[1]}) take(*p, scales_bytes);
  }
  /// Fills all arrays. Otherwise a step would read the codes of an earlier step with other formats:
  /// numbers far from those of training, whose quotients and roots take the GPU's slow paths.
  void fill_all(cudaStream_t stream) const {
    const auto fill_words = [&](std::byte* p, std::size_t bytes) {
      fill<<<1024, 256, 0, stream>>>(reinterpret_cast<std::uint32_t*>(p),
                                     static_cast<std::int64_t>(bytes / 4));
    };
    for (std::byte* p : {weights, gradient, master, states[0], states[1]}) fill_words(p, wide);
    fill_words(low, half);
    for (float* p : {scales[0], scales[1]}) {
      fill_ones<<<1024, 256, 0, stream>>>(p, static_cast<std::int64_t>(scales_bytes / 4));
    }
  }
};

/// How the tensors of a list are stored.
struct storage {
  const char* name;
  stored_format weights, gradient, master, state;
  low_part low = low_part::none;
};

optimizer_list list_in(const memory& m, const storage& s, const std::vector<std::int64_t>& sizes,
                       std::uint32_t block) {
  std::vector<optimizer_tensor> tensors;
  std::int64_t at = 0;  // elements; a multiple of 256, so that blocks of scales are not shared
  for (const std::int64_t n : sizes) {
    const auto placed = [&](std::byte* base, stored_format f, float* scales) -> stored_array {
      if (f == none) return {};
      return {base + at * code_bytes(f), f, has_block_scales(f) ? scales + at / block : nullptr};
    };
    optimizer_tensor t;
    t.weights = placed(m.weights, s.weights, nullptr);
    t.gradient = {m.gradient + at * code_bytes(s.gradient), s.gradient};
    t.master = placed(m.master, s.master, nullptr);
    t.states = {placed(m.states[0], s.state, m.scales[0]),
                placed(m.states[1], s.state, m.scales[1])};
    t.low_kind = s.low;
    if (s.low != low_part::none) t.low = m.low + at * 2;
    t.count = n;
    t.stream = static_cast<std::uint32_t>(tensors.size());
    t.block = block;
    tensors.push_back(t);
    at += (n + 255) / 256 * 256;
  }
  return optimizer_list(std::move(tensors), memory_space::device);
}

/// Bytes that a step must read and write for an element. Rule lamb reads weights and states twice.
double bytes_of(const storage& s, const optimizer_settings& settings, std::uint32_t block) {
  const double state = code_bytes(s.state) + (has_block_scales(s.state) ? 4.0 / block : 0);
  const int low = s.low == low_part::none ? 0 : 4;
  const int read = s.master == none ? code_bytes(s.weights) : code_bytes(s.master);
  const int passes = settings.rule == update_rule::lamb ? 2 : 1;
  return code_bytes(s.gradient) + passes * read + code_bytes(s.weights) + code_bytes(s.master) +
         low + state_count(settings) * (passes + 1) * state;
}

const char* rule_name(update_rule r) {
  switch (r) {
    case update_rule::adamw: return "AdamW";
    case update_rule::adam: return "Adam";
    case update_rule::sgd: return "SGD";
    case update_rule::lion: return "Lion";
    default: return "LAMB";
  }
}

struct bench_steps {
  const memory& arrays;
  std::string only;
  std::vector<work> list = {};
  std::vector<std::int64_t> model = model_sizes();
  std::vector<std::int64_t> small = std::vector<std::int64_t>(10'000, 1000);

  void add(const storage& s, const std::vector<std::int64_t>& sizes, optimizer_settings settings,
           std::uint32_t block = 128) {
    std::string name = std::string(rule_name(settings.rule)) + " " +
                       std::string(samebits::name(settings.profile)) + ", " + s.name + ", " +
                       std::to_string(sizes.size()) + " tensors";
    if (has_block_scales(s.state)) name += ", blocks of " + std::to_string(block);
    if (name.find(only) == std::string::npos) return;
    const optimizer_list tensors = list_in(arrays, s, sizes, block);
    settings.weight_decay = 0.1;
    settings.learning_rate = 1e-5;
    list.push_back({name, bytes_of(s, settings, block) * static_cast<double>(tensors.elements()),
                    [=](cudaStream_t stream) {
                      optimizer_step(tensors, {&settings, 1}, {.applied_steps = 100},
                                     on_stream(stream, "cuda-native"));
                    },
                    [m = arrays](cudaStream_t stream) { m.fill_all(stream); }});
  }
};

void add_all(bench_steps& b) {
  using enum update_profile;
  const storage plain = {"fp32", fp32, fp32, none, fp32};
  const storage master = {"bf16 gradient, fp32 master, bf16 copy", bf16_nearest, bf16_nearest, fp32,
                          fp32};
  const storage bf16 = {"bf16", bf16_nearest, bf16_nearest, none, bf16_nearest};
  const storage stochastic = {"bf16, weights stochastic", bf16_stochastic, bf16_nearest, none,
                              bf16_nearest};
  const storage all_stochastic = {"bf16, weights and states stochastic", bf16_stochastic,
                                  bf16_nearest, none, bf16_stochastic};
  const storage bytes = {"bf16, e4m3 states", bf16_nearest, bf16_nearest, none, e4m3_scaled};
  const storage dynamic = {"bf16, dynamic8 states", bf16_nearest, bf16_nearest, none,
                           dynamic8_signed};
  const storage split = {
      "bf16 split16, fp32 states", bf16_nearest, bf16_nearest, none, fp32, low_part::split};
  const storage kahan = {
      "bf16 kahan, bf16 states", bf16_nearest, bf16_nearest, none, bf16_nearest, low_part::kahan};
  for (const update_profile p : {strict, fma, torch_foreach, torch_fused}) {
    b.add(plain, b.model, {.profile = p});
    b.add(master, b.model, {.profile = p});
    b.add(bf16, b.model, {.profile = p});
    b.add(stochastic, b.model, {.profile = p});
    b.add(all_stochastic, b.model, {.profile = p});
    if (p == torch_foreach || p == torch_fused) continue;
    b.add(bytes, b.model, {.profile = p});
    b.add(bytes, b.model, {.profile = p}, 256);
    b.add(dynamic, b.model, {.profile = p}, 256);
  }
  for (const storage& s : {split, kahan}) b.add(s, b.model, {.profile = fma});
  b.add({"fp32 gradient, fp32 master, bf16 copy", bf16_nearest, fp32, fp32, fp32}, b.model,
        {.profile = fma});
  b.add({"bf16 gradient, fp32 master, bf16 copy, fp16_scaled states", bf16_nearest, bf16_nearest,
         fp32, fp16_scaled},
        b.model, {.profile = fma});
  for (const update_profile p : {apex_te, lightseq}) b.add(plain, b.model, {.profile = p});
  for (const update_rule r : {update_rule::sgd, update_rule::lion}) {
    storage one = {"fp32", fp32, fp32, none, fp32};
    b.add(one, b.model, {.rule = r, .profile = fma, .momentum = 0.9});
  }
  b.add(plain, b.model, {.rule = update_rule::lamb, .profile = fma});
  b.add(plain, b.small, {.profile = torch_fused});
  b.add(master, b.small, {.profile = torch_fused});
  b.add(bytes, b.small, {.profile = fma});
}

}  // namespace

int main(int argc, char** argv) {
  const bench_options options = options_of(argc, argv, "gpu_optimizer_bench [--only TEXT]");
  initialize("cuda-native");
  memory m = {};
  m.allocate();
  bench_steps b{.arrays = m, .only = options.only};
  b.list.push_back(copy_of(m.master, m.gradient, memory::half));
  add_all(b);
  run(b.list, options.only);
}
