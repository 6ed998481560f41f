// Quantization of lists of tensors on CUDA: builds the device tables, runs the general kernels over
// a list, and dispatches to the cuda-native kernels.
//
// The number of kernel launches is the same however many tensors the list holds.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/cuda/common/cuda.hpp"
#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/workspace.hpp"
#include "backends/cuda/instructions/hardware.cuh"
#include "backends/cuda/quantize/general/general.hpp"
#include "backends/cuda/quantize/general/general_kernels.cuh"
#include "backends/cuda/quantize/quantize.hpp"
#include "backends/cuda/quantize/tiles/list/list_tiles.cuh"
#include "backends/self_test/self_test.hpp"

namespace samebits::cuda {
namespace {

using backends::quantize_call;

/// Several tables in one allocation of device memory, filled by one upload().
class device_tables {
 public:
  /// Appends `values`. Returns their byte offset, a multiple of `alignment`.
  template <class T>
  std::size_t add(const std::vector<T>& values) {
    const std::size_t at = (bytes_.size() + alignment - 1) / alignment * alignment;
    bytes_.resize(at + values.size() * sizeof(T));
    const auto* const from = reinterpret_cast<const std::byte*>(values.data());
    std::copy(from, from + values.size() * sizeof(T),
              bytes_.begin() + static_cast<std::ptrdiff_t>(at));
    return at;
  }
  void upload() {
    if (bytes_.empty()) return;
    device_ = {static_cast<std::byte*>(memory.allocate(bytes_.size())), memory.release};
    memory.upload(device_.get(), bytes_.data(), bytes_.size());
    bytes_ = {};
  }
  template <class T>
  [[nodiscard]] const T* at(std::size_t offset) const {
    return reinterpret_cast<const T*>(device_.get() + offset);
  }

 private:
  static constexpr std::size_t alignment = 64;
  std::vector<std::byte> bytes_;
  std::shared_ptr<std::byte> device_;
};

/// A prepared list: its device tables and the launch parameters of both backends.
struct device_list {
  device_tables tables;
  list_work work{};
  list_launch native;
  bool large_tiles = false;
};

/// The first number of each tensor's tiles, spans and chunks, and the numbers' end.
struct list_numbers {
  std::vector<std::uint64_t> tiles{0}, spans{0}, chunks{0};

  void add(const quantize_task& t) {
    tiles.push_back(tiles.back() + tiles_of(t));
    spans.push_back(spans.back() + tiles_of(t) * spans_of_tile(t));
    chunks.push_back(chunks.back() + chunks_of(t));
  }
};

/// Builds and uploads the tables of the general kernels, and those of a cuda-native kernel that
/// supports the whole list, if there is one.
void add_work(device_list& list, std::span<const quantize_call> calls) {
  std::vector<quantize_task> tasks;
  list_numbers numbers;
  for (const quantize_call& call : calls) {
    if (call.in.rows == 0 || call.in.cols == 0) continue;
    tasks.push_back(task_of(call));
    numbers.add(tasks.back());
    list.large_tiles |= has_large_tiles(call);
  }
  const std::size_t at = list.tables.add(tasks), tiles = list.tables.add(numbers.tiles),
                    spans = list.tables.add(numbers.spans),
                    chunks = list.tables.add(numbers.chunks);
  const list_kernel kernel = list_kernel_of(calls);
  list_tables native;
  std::size_t native_tasks = 0, blocks = 0;
  if (kernel != list_kernel::none) {
    native = list_tables_of(calls, kernel);
    native_tasks = list.tables.add(native.tasks);
    blocks = list.tables.add(native.tensor_of_block);
  }
  list.tables.upload();
  list.work = {list.tables.at<quantize_task>(at),
               list.tables.at<std::uint64_t>(tiles),
               list.tables.at<std::uint64_t>(spans),
               list.tables.at<std::uint64_t>(chunks),
               static_cast<std::uint32_t>(tasks.size()),
               numbers.tiles.back(),
               numbers.spans.back(),
               numbers.chunks.back()};
  if (kernel == list_kernel::none) return;
  list.native = native.launch;
  list.native.tasks = list.tables.at<list_task>(native_tasks);
  list.native.tensor_of_block = list.tables.at<std::uint32_t>(blocks);
}

/// Memory of a list's tiles for the duration of one call. The amaxes start as no_amax.
struct list_memory : workspace, tile_memory {
  list_memory(const list_work& work, cudaStream_t stream)
      : workspace(nullptr, tile_memory::bytes(work.tiles), stream, "quantize: workspace"),
        tile_memory(data(), work.tiles) {
    clear_amaxes(amaxes, work.tiles, stream);
  }
};

/// Enqueues the general kernels: one kernel for small tiles, three kernels if any tensor has large
/// tiles.
template <class Arithmetic>
void launch_general(const device_list& list, cudaStream_t stream) {
  const list_work& work = list.work;
  if (!list.large_tiles) return launch_tiles<Arithmetic, 32>(work, stream);
  const list_memory memory(work, stream);
  launch_amaxes(work, memory.amaxes, stream);
  launch_scales<Arithmetic>(work, memory.amaxes, memory.scales, stream);
  launch_chunks<Arithmetic, false>(work, memory.scales, {}, stream);
}

/// Tensors with one scale each: amaxes (unless all scales are given), scales, then rounding.
void launch_tensors(const device_list& list, cudaStream_t stream) {
  const list_memory memory(list.work, stream);
  if (!list.native.given) launch_list_amaxes(list.native, memory.amaxes, stream);
  launch_scales<hardware>(list.work, memory.amaxes, memory.scales, stream);
  list_launch by_scales = list.native;
  by_scales.scales = memory.scales;
  launch_list_tiles(by_scales, stream);
}

}  // namespace

std::shared_ptr<const void> prepare_list(std::span<const quantize_call> calls) {
  auto list = std::make_shared<device_list>();
  add_work(*list, calls);
  return list;
}

void enqueue_list(const backends::quantize_list_data& list, arithmetic by, void* on) {
  const device_list& on_device = *static_cast<const device_list*>(list.on_device.get());
  const auto stream = static_cast<cudaStream_t>(on);
  if (by == arithmetic::by_definition || on_device.native.kernel == list_kernel::none) {
    with_arithmetic(by, [&](auto policy) { launch_general<decltype(policy)>(on_device, stream); });
  } else if (on_device.native.kernel == list_kernel::tensors) {
    launch_tensors(on_device, stream);
  } else {
    launch_list_tiles(on_device.native, stream);
  }
}

}  // namespace samebits::cuda
