// Tensor cores of this GPU against the model, bit for bit: every instruction, every family of
// operands. Prints what was compared; SAMEBITS_RECORD=FILE writes results down as vectors,
// SAMEBITS_TILES=N draws more or fewer (default 3072 of each family).
//
// The host draws tiles of operands: line i of A and of B come from one case of a family, so that
// the results on the diagonal are those cases. The device multiplies every tile of A with the B of
// 16 tiles and compares with numerics/accumulate.hpp there.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "device/device_copy.hpp"
#include "device/tensor_instructions.cuh"
#include "numerics/accumulate.hpp"
#include "support/tensor_cases.hpp"

namespace samebits::device_tests {
namespace {

using namespace support;

constexpr int cols = 8;
constexpr int line_words = 8;  ///< 32 bytes of K; instructions of 16 bytes use the first half
constexpr int partners = 16;   ///< tiles whose B each A meets
constexpr int most_failures = 4;

struct failure {
  std::uint32_t tile, partner, row, col, got, expected;
};

struct job {
  numerics::accumulate_rule rule;
  const std::uint32_t* a;  ///< [tiles][rows][line_words]
  const std::uint32_t* b;  ///< [tiles][cols][line_words]
  const std::uint32_t* c;  ///< [tiles][rows][cols]
  std::uint32_t tiles;
  std::uint32_t* own;  ///< [tiles][rows][cols]: the results of each tile with itself
  unsigned long long* differing;
  unsigned int* failures_found;
  failure* failures;
};

/// The code of product k of a line.
SAMEBITS_HD std::uint32_t code_of(const std::uint32_t* line, int bits, int k) {
  const int per_word = 32 / bits;
  const std::uint32_t word = line[k / per_word] >> (k % per_word * bits);
  return bits == 32 ? word : word & ((1u << bits) - 1);
}

__device__ __noinline__ std::uint32_t model(const numerics::accumulate_rule& rule,
                                            const std::uint32_t* a, const std::uint32_t* b,
                                            std::uint32_t c) {
  numerics::tensor_operand x[most_products];
  numerics::tensor_operand y[most_products];
  for (int k = 0; k < rule.products; ++k) {
    x[k] = numerics::tensor_operand_of(rule.a, rule.least_exponent_a,
                                       code_of(a, rule.a.storage_bits, k));
    y[k] = numerics::tensor_operand_of(rule.b, rule.least_exponent_b,
                                       code_of(b, rule.b.storage_bits, k));
  }
  return numerics::accumulate(rule, x, y, rule.products, c);
}

/// Compares the four results of a thread, whose rows begin at `row`.
__device__ void compare(const job& j, std::uint32_t tile, std::uint32_t partner, int rows, int row,
                        const std::uint32_t* d) {
  const int t = static_cast<int>(threadIdx.x % 4);
  const bool wide = j.rule.result.storage_bits == 32;
  for (int o = 0; o < 4; ++o) {
    const int r = row + 8 * (o / 2);
    const int c = 2 * t + o % 2;
    const std::uint32_t got = wide ? d[o] : (d[o / 2] >> (16 * (o % 2))) & 0xFFFFu;
    const std::size_t at = (static_cast<std::size_t>(tile) * rows + r) * cols + c;
    const std::uint32_t expected =
        model(j.rule, j.a + (static_cast<std::size_t>(tile) * rows + r) * line_words,
              j.b + (static_cast<std::size_t>(partner) * cols + c) * line_words, j.c[at]);
    if (tile == partner) j.own[at] = got;
    if (got == expected) continue;
    atomicAdd(j.differing, 1ull);
    const unsigned int slot = atomicAdd(j.failures_found, 1u);
    if (slot < most_failures) {
      j.failures[slot] = {
          tile, partner, static_cast<std::uint32_t>(r), static_cast<std::uint32_t>(c),
          got,  expected};
    }
  }
}

__device__ void load_c(const job& j, std::uint32_t tile, int rows, int row, std::uint32_t* d) {
  const int t = static_cast<int>(threadIdx.x % 4);
  const std::uint32_t* c = j.c + (static_cast<std::size_t>(tile) * rows + row) * cols + 2 * t;
  if (j.rule.result.storage_bits == 32) {
    d[0] = c[0], d[1] = c[1], d[2] = c[8 * cols], d[3] = c[8 * cols + 1];
  } else {
    d[0] = c[0] | c[1] << 16, d[1] = c[8 * cols] | c[8 * cols + 1] << 16, d[2] = 0, d[3] = 0;
  }
}

/// Blocks of warps; a warp takes one pair of tiles after the other.
template <ptx Instruction>
__global__ void mma_kernel(job j) {
  constexpr int rows = 16;
  const int row = static_cast<int>(threadIdx.x % 32 / 4);
  const int t = static_cast<int>(threadIdx.x % 4);
  const std::uint64_t warps = static_cast<std::uint64_t>(gridDim.x) * blockDim.x / 32;
  const std::uint64_t pairs = static_cast<std::uint64_t>(j.tiles) * partners;
  for (std::uint64_t p = (static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
       p < pairs; p += warps) {
    const auto tile = static_cast<std::uint32_t>(p / partners);
    const auto partner = static_cast<std::uint32_t>((tile + p % partners) % j.tiles);
    const std::uint32_t* a = j.a + (static_cast<std::size_t>(tile) * rows + row) * line_words + t;
    const std::uint32_t* b =
        j.b + (static_cast<std::size_t>(partner) * cols + row) * line_words + t;
    const fragments f = {
        {a[0], a[8 * line_words], a[4], a[8 * line_words + 4]}, {b[0], b[4]}, 0, 0};
    std::uint32_t d[4];
    load_c(j, tile, rows, row, d);
    execute<Instruction>::run(d, f);
    compare(j, tile, partner, rows, row, d);
  }
}

/// Blocks of one warpgroup. Operands lie in shared memory without swizzle: matrices of 8 lines of
/// 16 bytes, two of them along K (128 bytes apart), eight along the rows (256 bytes apart).
template <ptx Instruction>
__global__ void __launch_bounds__(128) wgmma_kernel(job j) {
  constexpr int rows = 64;
  __shared__ __align__(1024) std::uint32_t a_tile[rows * line_words];
  __shared__ __align__(1024) std::uint32_t b_tile[cols * line_words];
  const int thread = static_cast<int>(threadIdx.x);
  const auto place = [](int line, int word) {
    return line / 8 * 64 + word / 4 * 32 + line % 8 * 4 + word % 4;
  };
  const auto descriptor = [](const void* tile) {
    constexpr std::uint64_t along_k = 128 / 16;
    constexpr std::uint64_t along_lines = 256 / 16;
    const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(tile));
    return (address & 0x3FFFF) / 16 | along_k << 16 | along_lines << 32;
  };
  const fragments f = {{}, {}, descriptor(a_tile), descriptor(b_tile)};
  const int row = thread / 32 * 16 + thread % 32 / 4;
  const std::uint64_t pairs = static_cast<std::uint64_t>(j.tiles) * partners;
  for (std::uint64_t p = blockIdx.x; p < pairs; p += gridDim.x) {
    const auto tile = static_cast<std::uint32_t>(p / partners);
    const auto partner = static_cast<std::uint32_t>((tile + p % partners) % j.tiles);
    __syncthreads();
    for (int i = thread; i < rows * line_words; i += 128) {
      a_tile[place(i / line_words, i % line_words)] =
          j.a[static_cast<std::size_t>(tile) * rows * line_words + i];
    }
    if (thread < cols * line_words) {
      b_tile[place(thread / line_words, thread % line_words)] =
          j.b[static_cast<std::size_t>(partner) * cols * line_words + thread];
    }
#if SAMEBITS_HAS_WGMMA
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncthreads();
    std::uint32_t d[4];
    load_c(j, tile, rows, row, d);
    execute<Instruction>::run(d, f);
    compare(j, tile, partner, rows, row, d);
  }
}

using launcher = void (*)(const job& j, int blocks);

template <ptx Instruction>
void launch(const job& j, int blocks) {
  if constexpr (Instruction < ptx::wgmma_f16) {
    mma_kernel<Instruction><<<blocks, 128>>>(j);
  } else {
    wgmma_kernel<Instruction><<<blocks, 128>>>(j);
  }
}

struct subject {
  const char* name;
  launcher run;
  format_id a, b, result;
  int products;
};

using enum format_id;
const subject subjects[] = {
    {"mma_f16_k16", launch<ptx::mma_f16_k16>, fp16, fp16, fp32, 16},
    {"mma_f16_k8", launch<ptx::mma_f16_k8>, fp16, fp16, fp32, 8},
    {"mma_f16_f16_k16", launch<ptx::mma_f16_f16_k16>, fp16, fp16, fp16, 16},
    {"mma_f16_f16_k8", launch<ptx::mma_f16_f16_k8>, fp16, fp16, fp16, 8},
    {"mma_bf16_k16", launch<ptx::mma_bf16_k16>, bf16, bf16, fp32, 16},
    {"mma_bf16_k8", launch<ptx::mma_bf16_k8>, bf16, bf16, fp32, 8},
    {"mma_tf32_k8", launch<ptx::mma_tf32_k8>, tf32, tf32, fp32, 8},
    {"mma_tf32_k4", launch<ptx::mma_tf32_k4>, tf32, tf32, fp32, 4},
    {"mma_e4m3_k32", launch<ptx::mma_e4m3_k32>, e4m3, e4m3, fp32, 32},
    {"mma_e5m2_k32", launch<ptx::mma_e5m2_k32>, e5m2, e5m2, fp32, 32},
    {"mma_e4m3_e5m2_k32", launch<ptx::mma_e4m3_e5m2_k32>, e4m3, e5m2, fp32, 32},
    {"mma_e5m2_e4m3_k32", launch<ptx::mma_e5m2_e4m3_k32>, e5m2, e4m3, fp32, 32},
    {"mma_e4m3_k16", launch<ptx::mma_e4m3_k16>, e4m3, e4m3, fp32, 16},
    {"mma_e5m2_k16", launch<ptx::mma_e5m2_k16>, e5m2, e5m2, fp32, 16},
    {"mma_f16_e4m3_k32", launch<ptx::mma_f16_e4m3_k32>, e4m3, e4m3, fp16, 32},
    {"mma_f16_e5m2_k32", launch<ptx::mma_f16_e5m2_k32>, e5m2, e5m2, fp16, 32},
    {"wgmma_f16", launch<ptx::wgmma_f16>, fp16, fp16, fp32, 16},
    {"wgmma_f16_f16", launch<ptx::wgmma_f16_f16>, fp16, fp16, fp16, 16},
    {"wgmma_bf16", launch<ptx::wgmma_bf16>, bf16, bf16, fp32, 16},
    {"wgmma_tf32", launch<ptx::wgmma_tf32>, tf32, tf32, fp32, 8},
    {"wgmma_e4m3", launch<ptx::wgmma_e4m3>, e4m3, e4m3, fp32, 32},
    {"wgmma_e5m2", launch<ptx::wgmma_e5m2>, e5m2, e5m2, fp32, 32},
    {"wgmma_e4m3_e5m2", launch<ptx::wgmma_e4m3_e5m2>, e4m3, e5m2, fp32, 32},
    {"wgmma_e5m2_e4m3", launch<ptx::wgmma_e5m2_e4m3>, e5m2, e4m3, fp32, 32},
    {"wgmma_f16_e4m3", launch<ptx::wgmma_f16_e4m3>, e4m3, e4m3, fp16, 32},
    {"wgmma_f16_e5m2", launch<ptx::wgmma_f16_e5m2>, e5m2, e5m2, fp16, 32},
    {"wgmma_f16_e4m3_e5m2", launch<ptx::wgmma_f16_e4m3_e5m2>, e4m3, e5m2, fp16, 32},
    {"wgmma_f16_e5m2_e4m3", launch<ptx::wgmma_f16_e5m2_e4m3>, e5m2, e4m3, fp16, 32},
};

bool is_wgmma(const subject& s) { return std::strncmp(s.name, "wgmma", 5) == 0; }

/// The unit that a GPU of compute capability 10 * major + minor has behind an instruction.
std::optional<tensor_unit> unit_of(const subject& s, int capability) {
  if (is_wgmma(s)) {
    return capability == 90 ? std::optional(tensor_unit::hopper_wgmma) : std::nullopt;
  }
  switch (capability) {
    case 80:
    case 86: return tensor_unit::ampere_mma;
    case 89: return tensor_unit::ada_mma;
    case 90: return tensor_unit::hopper_mma_sync;
    default: return std::nullopt;  // the program holds no code of later GPUs
  }
}

/// Memory of the device, freed at the end.
template <class T>
class device_array {
 public:
  explicit device_array(std::size_t count) {
    support::check_cuda(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc");
    support::check_cuda(cudaMemset(data_, 0, count * sizeof(T)), "cudaMemset");
  }
  explicit device_array(const std::vector<T>& from) : device_array(from.size()) {
    support::check_cuda(
        cudaMemcpy(data_, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice),
        "cudaMemcpy");
  }
  ~device_array() { cudaFree(data_); }
  device_array(const device_array&) = delete;
  device_array& operator=(const device_array&) = delete;

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::vector<T> read(std::size_t count) const {
    std::vector<T> all(count);
    support::check_cuda(cudaMemcpy(all.data(), data_, count * sizeof(T), cudaMemcpyDeviceToHost),
                        "cudaMemcpy");
    return all;
  }

 private:
  T* data_ = nullptr;
};

/// Tiles of one family on the host.
struct drawn_tiles {
  int rows;
  std::vector<std::uint32_t> a, b, c;
};

void put_line(std::uint32_t* line, int bits, const std::uint32_t* codes, int count) {
  const int per_word = 32 / bits;
  for (int k = 0; k < count; ++k) line[k / per_word] |= codes[k] << (k % per_word * bits);
}

void draw_tile(const tensor_instruction& i, tensor_family family, std::uint64_t seed,
               drawn_tiles& tiles, std::size_t tile) {
  word_stream words(seed);
  const auto rows = static_cast<std::size_t>(tiles.rows);
  for (std::size_t r = 0; r < rows; ++r) {
    const tensor_case x = draw_tensor_case(i, family, words);
    put_line(&tiles.a[(tile * rows + r) * line_words], spec_of(i.a).storage_bits, x.a.data(),
             i.products);
    if (r < cols) {
      put_line(&tiles.b[(tile * cols + r) * line_words], spec_of(i.b).storage_bits, x.b.data(),
               i.products);
    }
    for (std::size_t c = 0; c < cols; ++c) {
      const bool of_case = c == r % cols;
      tiles.c[(tile * rows + r) * cols + c] = of_case ? x.c : draw_tensor_case(i, family, words).c;
    }
  }
}

drawn_tiles draw_tiles(const tensor_instruction& i, tensor_family family, int rows,
                       std::uint32_t count) {
  const std::size_t n = count;
  const auto m = static_cast<std::size_t>(rows);
  drawn_tiles tiles{rows, std::vector<std::uint32_t>(n * m * line_words),
                    std::vector<std::uint32_t>(n * cols * line_words),
                    std::vector<std::uint32_t>(n * m * cols)};
  const unsigned workers = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> threads;
  for (unsigned w = 0; w < workers; ++w) {
    threads.emplace_back([&, w] {
      for (std::size_t t = w; t < n; t += workers) {
        const std::uint64_t seed = (static_cast<std::uint64_t>(family) << 32) + t;
        draw_tile(i, family, seed, tiles, t);
      }
    });
  }
  return threads.clear(), tiles;  // joins them first
}

std::uint32_t tiles_wanted() {
  const char* text = std::getenv("SAMEBITS_TILES");
  return text == nullptr ? 3072u : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
}

/// A line for each result on a diagonal, as tests/golden/tensor_core_golden.cpp reads it: unit,
/// formats of A, B and the result, products; c, the result, then codes of A and B for each product.
void record(std::FILE* file, const subject& s, tensor_unit unit, const drawn_tiles& tiles,
            const std::vector<std::uint32_t>& own) {
  constexpr std::size_t kept = 1;  // tiles of a family
  const auto rows = static_cast<std::size_t>(tiles.rows);
  for (std::size_t t = 0; t < kept; ++t) {
    for (std::size_t r = 0; r < cols; ++r) {
      const std::size_t at = (t * rows + r) * cols + r;
      const auto text = [](auto x) { return std::string(name(x)); };
      std::fprintf(file, "%s %s %s %s %d %X %X", text(unit).c_str(), text(s.a).c_str(),
                   text(s.b).c_str(), text(s.result).c_str(), s.products, tiles.c[at], own[at]);
      for (int k = 0; k < s.products; ++k) {
        std::fprintf(file, " %X %X",
                     code_of(&tiles.a[(t * rows + r) * line_words], spec_of(s.a).storage_bits, k),
                     code_of(&tiles.b[(t * cols + r) * line_words], spec_of(s.b).storage_bits, k));
      }
      std::fprintf(file, "\n");
    }
  }
}

class TensorCore : public ::testing::TestWithParam<subject> {};

TEST_P(TensorCore, IsTheModel) {
  const subject& s = GetParam();
  cudaDeviceProp device;
  if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) FAIL() << "no usable GPU";
  const auto unit = unit_of(s, 10 * device.major + device.minor);
  const auto row = unit ? find_tensor_row(*unit, *tensor_operands_of(s.a, s.b)) : std::nullopt;
  if (!row) GTEST_SKIP() << device.name << " has no " << s.name;
  const tensor_instruction i = {*row, s.a, s.b, s.result, s.products};
  const int rows = is_wgmma(s) ? 64 : 16;
  const std::uint32_t tiles = std::max(4u, tiles_wanted() / (is_wgmma(s) ? 4u : 1u));
  const char* path = std::getenv("SAMEBITS_RECORD");
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "a");
  unsigned long long compared = 0;
  unsigned long long differing = 0;
  for (int family = 0; family < tensor_family_count; ++family) {
    const drawn_tiles drawn = draw_tiles(i, static_cast<tensor_family>(family), rows, tiles);
    const device_array<std::uint32_t> a(drawn.a), b(drawn.b), c(drawn.c), own(drawn.c.size());
    const device_array<unsigned long long> count(1);
    const device_array<unsigned int> found(1);
    const device_array<failure> failures(most_failures);
    const job j = {numerics::accumulate_rule_of(*row, s.a, s.b, s.result, s.products),
                   a.data(),
                   b.data(),
                   c.data(),
                   tiles,
                   own.data(),
                   count.data(),
                   found.data(),
                   failures.data()};
    s.run(j, device.multiProcessorCount * 8);
    support::check_cuda(cudaDeviceSynchronize(), s.name);
    compared +=
        static_cast<unsigned long long>(tiles) * partners * static_cast<unsigned>(rows) * cols;
    const unsigned long long wrong = count.read(1)[0];
    differing += wrong;
    if (wrong != 0) {
      for (const failure& f : failures.read(std::min<unsigned long long>(wrong, most_failures))) {
        std::printf("%s, family %d, tile %u with %u, row %u, col %u: got %X, expected %X\n", s.name,
                    family, f.tile, f.partner, f.row, f.col, f.got, f.expected);
      }
    }
    if (file != nullptr) record(file, s, *unit, drawn, own.read(drawn.c.size()));
  }
  if (file != nullptr) std::fclose(file);
  std::printf("%s on %s: %llu results compared, %llu differ\n", s.name, device.name, compared,
              differing);
  EXPECT_EQ(differing, 0u);
}

INSTANTIATE_TEST_SUITE_P(Instructions, TensorCore, ::testing::ValuesIn(subjects),
                         [](const auto& i) { return std::string(i.param.name); });

}  // namespace
}  // namespace samebits::device_tests
