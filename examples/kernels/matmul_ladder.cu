// A ladder of matrix products on a GPU, from the naive kernel to one with register tiles: the speed changes, the
// bits do not, because every kernel adds an element's products k = 0, 1, ... by fma. The last kernel
// divides K, and its bits are those of another rule.
//
//   naive        neighbouring threads have neighbouring rows: their loads of A are apart
//   coalesced    neighbouring threads have neighbouring columns
//   tiled        a block shares tiles of 32 x 32 through shared memory
//   coarsened    each thread has eight rows of a tile, so a load of B serves eight
//   padded       the same without a branch at the edges: tiles beyond them hold zeros
//   split K      four parts of K at once, added at the end: another order, other bits
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iomanip>
#include <iostream>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "samebits/product_rule.hpp"

using namespace samebits;

namespace {

constexpr int n = 1000;  // rows and columns of A, B and C; no multiple of a tile
constexpr int tile = 32, coarse = 8;

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

/// The products of row `row` and column `col` for k in [first, last), in ascending order.
__device__ float dot(const float* a, const float* b, int row, int col, int first, int last) {
  float sum = 0;
  for (int k = first; k < last; ++k) sum = __fmaf_rn(a[row * n + k], b[k * n + col], sum);
  return sum;
}

__global__ void naive(const float* a, const float* b, float* c) {
  const int row = static_cast<int>(blockIdx.x * tile + threadIdx.x);
  const int col = static_cast<int>(blockIdx.y * tile + threadIdx.y);
  if (row < n && col < n) c[row * n + col] = dot(a, b, row, col, 0, n);
}

__global__ void coalesced(const float* a, const float* b, float* c) {
  const int row = static_cast<int>(blockIdx.y * tile + threadIdx.y);
  const int col = static_cast<int>(blockIdx.x * tile + threadIdx.x);
  if (row < n && col < n) c[row * n + col] = dot(a, b, row, col, 0, n);
}

/// Rows rows of a tile a thread. Padded: sums all of a tile, else what lies in the matrix.
template <int Rows, bool Padded>
__global__ void tiled(const float* a, const float* b, float* c) {
  __shared__ float tile_a[tile][tile], tile_b[tile][tile];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y) * Rows;
  const int col = static_cast<int>(blockIdx.x) * tile + x;
  const int row = static_cast<int>(blockIdx.y) * tile + y;
  float sums[Rows] = {};
  for (int first = 0; first < n; first += tile) {
    for (int i = 0; i < Rows; ++i) {
      const bool in_a = row + i < n && first + x < n, in_b = first + y + i < n && col < n;
      tile_a[y + i][x] = in_a ? a[(row + i) * n + first + x] : 0.0f;
      tile_b[y + i][x] = in_b ? b[(first + y + i) * n + col] : 0.0f;
    }
    __syncthreads();
    // The products of zeros are +0, and change no sum: none is -0.
    const int last = Padded ? tile : min(tile, n - first);
#pragma unroll
    for (int k = 0; k < (Padded ? tile : last); ++k) {
      for (int i = 0; i < Rows; ++i) sums[i] = __fmaf_rn(tile_a[y + i][k], tile_b[k][x], sums[i]);
    }
    __syncthreads();
  }
  for (int i = 0; i < Rows; ++i) {
    if (row + i < n && col < n) c[(row + i) * n + col] = sums[i];
  }
}

__global__ void split_k(const float* a, const float* b, float* c) {
  const int row = static_cast<int>(blockIdx.y * tile + threadIdx.y);
  const int col = static_cast<int>(blockIdx.x * tile + threadIdx.x);
  if (row >= n || col >= n) return;
  float parts[4];
  for (int i = 0; i < 4; ++i) parts[i] = dot(a, b, row, col, i * n / 4, (i + 1) * n / 4);
  c[row * n + col] = ((parts[0] + parts[1]) + parts[2]) + parts[3];
}

using kernel = void (*)(const float*, const float*, float*);

/// Matrices in device memory.
struct matrices {
  float *a = nullptr, *b = nullptr, *c = nullptr;
  matrices(const std::vector<float>& from_a, const std::vector<float>& from_b) {
    for (float** one : {&a, &b, &c}) check(cudaMalloc(one, sizeof(float) * n * n));
    check(cudaMemcpy(a, from_a.data(), sizeof(float) * n * n, cudaMemcpyDefault));
    check(cudaMemcpy(b, from_b.data(), sizeof(float) * n * n, cudaMemcpyDefault));
  }
  ~matrices() {
    for (float* one : {a, b, c}) cudaFree(one);
  }
};

/// Milliseconds of a launch, the mean of ten.
float run(kernel call, dim3 threads, const matrices& m) {
  const dim3 blocks((n + tile - 1) / tile, (n + tile - 1) / tile);
  constexpr int launches = 10;
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  call<<<blocks, threads>>>(m.a, m.b, m.c);
  check(cudaEventRecord(begin));
  for (int i = 0; i < launches; ++i) call<<<blocks, threads>>>(m.a, m.b, m.c);
  check(cudaEventRecord(end));
  check(cudaEventSynchronize(end));
  float ms = 0;
  check(cudaEventElapsedTime(&ms, begin, end));
  check(cudaEventDestroy(begin));
  check(cudaEventDestroy(end));
  return ms / launches;
}

}  // namespace

int main() try {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> a(n * n), b(n * n), expected(n * n), c(n * n);
  for (float& x : a) x = normal(random);
  for (float& x : b) x = normal(random);
  const auto view = [](std::vector<float>& v) { return view_of(v.data(), n, n); };
  const accumulator in_order = {.kind = accumulator_kind::ieee_fp32,
                                .order = fp32_order::ascending_fused};
  matmul(view(a), view(b), view(expected), in_order);

  const matrices m(a, b);
  const dim3 whole(tile, tile), rows(tile, tile / coarse);
  const struct {
    const char* name;
    kernel call;
    dim3 threads;
  } ladder[] = {{"naive", naive, whole},
                {"coalesced", coalesced, whole},
                {"tiled", tiled<1, false>, whole},
                {"coarsened", tiled<coarse, false>, rows},
                {"padded", tiled<coarse, true>, rows},
                {"split K", split_k, whole}};
  for (const auto& rung : ladder) {
    const float ms = run(rung.call, rung.threads, m);
    check(cudaMemcpy(c.data(), m.c, sizeof(float) * n * n, cudaMemcpyDefault));
    const auto differ = std::inner_product(c.begin(), c.end(), expected.begin(), 0, std::plus<>(),
                                           [](float x, float y) { return x == y ? 0 : 1; });
    const std::vector<product_rule> rules = find_rule(view(a), view(b), view(c));
    std::cout << std::left << std::setw(10) << rung.name << std::right << std::setw(8)
              << static_cast<int>(1e-6 * 2 * n * n / ms * n) << " GFLOP/s, " << differ
              << " differ from the order k = 0, 1, ...; rule: "
              << (rules.empty() ? "none known" : rule_text(rules.front())) << "\n";
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
