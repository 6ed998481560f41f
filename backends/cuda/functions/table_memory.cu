// The memory pools of tables.
#include "backends/cuda/functions/table_memory.hpp"

#include <array>
#include <cstdint>
#include <mutex>

#include "backends/cuda/common/error.hpp"
#include "backends/cuda/self_test/self_test_stream.hpp"

namespace samebits::cuda {
namespace {

cudaMemPool_t new_pool(int device, const char* what) {
  const capture_apart apart;
  cudaMemPoolProps props{};
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  props.location.id = device;
  cudaMemPool_t pool = nullptr;
  check(cudaMemPoolCreate(&pool, &props), what);
  std::uint64_t keep_all = UINT64_MAX;
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep_all), what);
  return pool;
}

/// The current device's pool.
cudaMemPool_t pool_of_tables(const char* what) {
  constexpr std::size_t max_devices = 64;
  static std::array<cudaMemPool_t, max_devices> pools = {};
  static std::mutex making;
  int device = 0;
  check(cudaGetDevice(&device), what);
  const std::lock_guard lock(making);
  cudaMemPool_t& pool = pools.at(static_cast<std::size_t>(device));
  if (pool == nullptr) pool = new_pool(device, what);
  return pool;
}

}  // namespace

table_memory::table_memory(std::size_t bytes, cudaStream_t stream, const char* what)
    : stream_(stream) {
  check(cudaMallocFromPoolAsync(&data_, bytes, pool_of_tables(what), stream), what);
}

table_memory::~table_memory() { cudaFreeAsync(data_, stream_); }

}  // namespace samebits::cuda
