// Quantization of lists of tensors on CUDA: builds the device tables, runs the general kernels over
// a list, and dispatches to the cuda-native kernels.
//
// The number of kernel launches is the same however many tensors the list holds. Tiles, spans and
// chunks are numbered through all tensors; a binary search finds the tensor of a number.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/cuda/common/cuda.hpp"
#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/common/workspace.hpp"
#include "backends/cuda/instructions/hardware.cuh"
#include "backends/cuda/quantize/general/quantize_steps.cuh"
#include "backends/cuda/quantize/quantize.hpp"
#include "backends/cuda/quantize/tiles/list/list_tiles.cuh"
#include "backends/self_test/self_test.hpp"

namespace samebits::cuda {
namespace {

using backends::quantize_call;

/// Work items of one kind (tiles, spans of tiles or chunks), numbered through all tensors. Tensor i
/// has the numbers first[i] to first[i + 1] - 1; first has tensors + 1 entries.
struct numbering {
  const std::uint64_t* first;
  std::uint32_t tensors;
  std::uint64_t count;

  /// The tensor of a number below `count`: the last tensor whose first number is not above
  /// `number`.
  __device__ std::uint32_t tensor_of(std::uint64_t number) const {
    std::uint32_t low = 0, high = tensors;
    while (high - low > 1) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (first[middle] <= number) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

/// list_work: the launch parameters of the general kernels on a list. tasks[] is in device memory
/// and holds one entry per non-empty tensor.
struct list_work {
  const quantize_task* tasks;
  numbering tiles;
  numbering spans;   ///< spans of tiles, span_elements elements each
  numbering chunks;  ///< chunks of tensors, chunk_elements elements each
};

/// Spans of span_elements elements in one tile.
__device__ std::uint64_t spans_of_tile(const quantize_task& t) {
  return (t.tile_rows * t.tile_cols + span_elements - 1) / span_elements;
}

/// One warp quantizes one tile of few elements.
template <class Arithmetic>
__global__ void __launch_bounds__(block_threads) list_tiles_kernel(const list_work list) {
  if (list.tasks[0].skipped()) return;
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (block_threads / 32);
  for (std::uint64_t i = (std::uint64_t{blockIdx.x} * block_threads + threadIdx.x) / 32;
       i < list.tiles.count; i += warps) {
    const std::uint32_t tensor = list.tiles.tensor_of(i);
    quantize_tile<Arithmetic>(list.tasks[tensor], i - list.tiles.first[tensor], threadIdx.x % 32);
  }
}

/// Finds the amax of every tile. One warp per span of span_elements elements of a tile. amaxes[]
/// must start as no_amax. Tensors with given scales are skipped.
__global__ void __launch_bounds__(block_threads)
    list_amaxes_kernel(const list_work list, tile_amax* const amaxes) {
  if (list.tasks[0].skipped()) return;
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (block_threads / 32);
  for (std::uint64_t i = (std::uint64_t{blockIdx.x} * block_threads + threadIdx.x) / 32;
       i < list.spans.count; i += warps) {
    const std::uint32_t tensor = list.spans.tensor_of(i);
    const quantize_task& t = list.tasks[tensor];
    if (t.has_given_scales()) continue;
    const std::uint64_t number = i - list.spans.first[tensor], spans = spans_of_tile(t);
    const std::uint64_t tile = number / spans, begin = number % spans * span_elements;
    const tile_amax amax = amax_of_span(t, tile, begin, begin + span_elements, threadIdx.x % 32);
    if (threadIdx.x % 32 == 0) atomicMax(&amaxes[list.tiles.first[tensor] + tile], amax);
  }
}

/// Computes and stores the scale of every tile. One thread per tile.
template <class Arithmetic>
__global__ void __launch_bounds__(block_threads)
    list_scales_kernel(const list_work list, const tile_amax* const amaxes,
                       numerics::tile_scale* const scales) {
  if (list.tasks[0].skipped()) return;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * block_threads + threadIdx.x;
       i < list.tiles.count; i += std::uint64_t{gridDim.x} * block_threads) {
    const std::uint32_t tensor = list.tiles.tensor_of(i);
    const quantize_task& t = list.tasks[tensor];
    const std::uint64_t tile = i - list.tiles.first[tensor];
    const std::uint64_t row = tile / t.grid_cols, col = tile % t.grid_cols;
    scales[i] = t.scale_of_tile<Arithmetic>(row, col, amaxes[i]);
    t.store_scale(row, col, scales[i].dequantization_scale);
  }
}

/// Rounds every element by the scale of its tile. One block per chunk.
template <class Arithmetic>
__global__ void __launch_bounds__(block_threads)
    list_chunks_kernel(const list_work list, const numerics::tile_scale* const scales) {
  if (list.tasks[0].skipped()) return;
  for (std::uint64_t i = blockIdx.x; i < list.chunks.count; i += gridDim.x) {
    const std::uint32_t tensor = list.chunks.tensor_of(i);
    const quantize_task& t = list.tasks[tensor];
    const numerics::tile_scale* const of_tensor = scales + list.tiles.first[tensor];
    const std::uint64_t begin = (i - list.chunks.first[tensor]) * chunk_elements;
    const std::uint64_t end = min(begin + chunk_elements, t.rows * t.cols);
    for (std::uint64_t k = begin + threadIdx.x; k < end; k += block_threads) {
      const std::uint64_t row = k / t.cols, col = k - row * t.cols;
      quantized<Arithmetic>(t, of_tensor[t.tile_of(row, col)], row, col);
    }
  }
}

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

/// The first number of each tensor's tiles, spans and chunks, as `numbering` reads them.
struct list_numbers {
  std::vector<std::uint64_t> tiles{0}, spans{0}, chunks{0};

  void add(const quantize_call& call) {
    const auto of = [](std::int64_t count, std::uint64_t parts) {
      return (static_cast<std::uint64_t>(count) + parts - 1) / parts;
    };
    const std::uint64_t grid = of(call.grid.rows * call.grid.cols, 1);
    tiles.push_back(tiles.back() + grid);
    spans.push_back(spans.back() +
                    grid * of(call.grid.tile_rows * call.grid.tile_cols, span_elements));
    chunks.push_back(chunks.back() + of(call.in.rows * call.in.cols, chunk_elements));
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
    numbers.add(call);
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
  const auto count = static_cast<std::uint32_t>(tasks.size());
  const auto numbering_at = [&](std::size_t offset, const std::vector<std::uint64_t>& first) {
    return numbering{list.tables.at<std::uint64_t>(offset), count, first.back()};
  };
  list.work = {list.tables.at<quantize_task>(at), numbering_at(tiles, numbers.tiles),
               numbering_at(spans, numbers.spans), numbering_at(chunks, numbers.chunks)};
  if (kernel == list_kernel::none) return;
  list.native.kernel = kernel;
  list.native.tasks = list.tables.at<list_task>(native_tasks);
  list.native.tensor_of_block = list.tables.at<std::uint32_t>(blocks);
  list.native.blocks = static_cast<std::uint32_t>(native.tensor_of_block.size());
  const tile_task& first = native.tasks.front().block_tiles;
  list.native.tile_rows = first.tile_rows;
  list.native.tile_cols = first.tile_cols;
  list.native.divided = native.divided;
  list.native.transposed = native.transposed;
  list.native.given = native.given;
  list.native.skip = first.skip;
  for (const quantize_call& call : calls) {
    if (call.in.rows == 0 || call.in.cols == 0) continue;
    list.native.from = call.in.format;
    list.native.to = call.to;
  }
}

/// An amax and a scale for each tile of a list, for the duration of one call. The amaxes are
/// initialized to no_amax.
class tiles_memory {
 public:
  tiles_memory(const list_work& work, cudaStream_t stream)
      : tiles_((work.tiles.count + 3) / 4 * 4),  // a multiple of 16 bytes
        memory_(nullptr, tiles_ * (sizeof(tile_amax) + sizeof(numerics::tile_scale)), stream,
                "quantize: workspace") {
    constexpr int nothing = 0xFF;  // every byte of no_amax
    static_assert(numerics::no_amax == -1);
    check(cudaMemsetAsync(amaxes(), nothing, tiles_ * sizeof(tile_amax), stream),
          "quantize: memset");
  }
  [[nodiscard]] tile_amax* amaxes() const { return reinterpret_cast<tile_amax*>(memory_.data()); }
  [[nodiscard]] numerics::tile_scale* scales() const {
    return reinterpret_cast<numerics::tile_scale*>(amaxes() + tiles_);
  }

 private:
  std::uint64_t tiles_;
  workspace memory_;
};

template <class Arithmetic>
void launch_scales(const list_work& work, const tiles_memory& memory, cudaStream_t stream) {
  launch_kernel("quantize a list", list_scales_kernel<Arithmetic>,
                grid_for(work.tiles.count, block_threads), block_threads, 0, stream, work,
                memory.amaxes(), memory.scales());
}

/// Enqueues the general kernels: one kernel for small tiles, three kernels if any tensor has large
/// tiles.
template <class Arithmetic>
void launch_general(const device_list& list, cudaStream_t stream) {
  const list_work& work = list.work;
  if (work.tiles.count == 0) return;
  if (!list.large_tiles) {
    launch_kernel("quantize a list", list_tiles_kernel<Arithmetic>,
                  grid_for(work.tiles.count, block_threads / 32), block_threads, 0, stream, work);
    return;
  }
  const tiles_memory memory(work, stream);
  launch_kernel("quantize a list", list_amaxes_kernel,
                grid_for(work.spans.count, block_threads / 32), block_threads, 0, stream, work,
                memory.amaxes());
  launch_scales<Arithmetic>(work, memory, stream);
  launch_kernel("quantize a list", list_chunks_kernel<Arithmetic>, grid_for(work.chunks.count, 1),
                block_threads, 0, stream, work, memory.scales());
}

/// Tensors with one scale each: amaxes (unless all scales are given), scales, then rounding.
void launch_tensors(const device_list& list, cudaStream_t stream) {
  const tiles_memory memory(list.work, stream);
  if (!list.native.given) launch_list_amaxes(list.native, memory.amaxes(), stream);
  launch_scales<hardware>(list.work, memory, stream);
  list_launch by_scales = list.native;
  by_scales.scales = memory.scales();
  launch_list_tiles(by_scales, stream);
}

const device_list& prepared(const backends::quantize_list_data& list) {
  return *static_cast<const device_list*>(list.on_device.get());
}

}  // namespace

std::shared_ptr<const void> prepare_list(std::span<const quantize_call> calls) {
  auto list = std::make_shared<device_list>();
  add_work(*list, calls);
  return list;
}

void enqueue_list_emulated(const backends::quantize_list_data& list, void* stream) {
  launch_general<numerics::by_definition>(prepared(list), static_cast<cudaStream_t>(stream));
}

void enqueue_list_native(const backends::quantize_list_data& list, void* stream) {
  const device_list& on_device = prepared(list);
  const auto on = static_cast<cudaStream_t>(stream);
  if (on_device.native.kernel == list_kernel::none) {
    launch_general<hardware>(on_device, on);
  } else if (on_device.native.kernel == list_kernel::tensors) {
    launch_tensors(on_device, on);
  } else {
    launch_list_tiles(on_device.native, on);
  }
}

}  // namespace samebits::cuda
