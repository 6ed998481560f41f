// Functions of the CUDA backends that use a communicator on device memory: gradient reduction, as the
// steps of an exchange, and messages in host memory.
#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/common/workspace.hpp"
#include "backends/cuda/tensor_list/list_launch.cuh"
#include "backends/cuda/training/gradient_reduction_kernels.cuh"
#include "backends/cuda/training/training.hpp"
#include "backends/dispatch/visit.hpp"
#include "backends/ranks/gradient_exchange.hpp"

namespace samebits::cuda {
namespace {

using numerics::list_row;
using numerics::tile_scale;

/// The tables of a list of tensors in one allocation. rows, row_of_chunk and starts are copied from
/// the host.
struct list_tables {
  list_row* rows;
  std::uint32_t* row_of_chunk;
  std::int64_t* starts;
  tile_scale* scales;
  std::uint32_t* words;
  std::size_t bytes;

  list_tables(memory_layout layout, const backends::list_data& list)
      : rows(layout.take<list_row>(list.rows.size())),
        row_of_chunk(layout.take<std::uint32_t>(list.row_of_chunk.size())),
        starts(layout.take<std::int64_t>(list.rows.size())),
        scales(layout.take<tile_scale>(list.rows.size())),
        words(layout.take<std::uint32_t>(list.rows.size())),
        bytes(layout.bytes()) {}
};

/// backends::reduction_steps in device memory, enqueued on the communicator's stream.
template <arithmetic By>
class device_steps final : public backends::reduction_steps {
 public:
  /// Copies the tables to the device, and waits: the caller may free the list after this call.
  device_steps(const communicator& ranks, const backends::list_data& list,
               const gradient_reduction& how)
      : on_(static_cast<cudaStream_t>(ranks.stream())),
        host_(list),
        how_(how),
        task_{{spec_of(how.communication), how.scale, how.rounding},
              source_of(how.random),
              how.random.offset,
              std::bit_cast<std::uint32_t>(how.factor),
              ranks.size()},
        memory_(nullptr, list_tables({}, list).bytes, on_, what),
        tables_(memory_layout(memory_.data()), list),
        list_{{tables_.rows, tables_.row_of_chunk, list.rows.size(), list.row_of_chunk.size()},
              tables_.starts,
              storage_bytes(how.communication) == 1 ? tables_.scales : nullptr} {
    for (const list_row& row : list.rows) starts_.push_back(starts_.back() + row.count);
    const auto copy = [&](auto* device, const auto& host, std::size_t count) {
      check(cudaMemcpyAsync(device, host.data(), count * sizeof(host[0]), cudaMemcpyHostToDevice,
                            on_),
            what);
    };
    copy(tables_.rows, list.rows, list.rows.size());
    copy(tables_.row_of_chunk, list.row_of_chunk, list.row_of_chunk.size());
    copy(tables_.starts, starts_, list.rows.size());
    check(cudaStreamSynchronize(on_), "work on the device");
  }

  std::byte* memory(std::size_t bytes) override {
    messages_.emplace(nullptr, bytes, on_, what);
    return messages_->data();
  }
  void fill_with_zeros(std::byte* data, std::size_t bytes) override {
    check(cudaMemsetAsync(data, 0, bytes, on_), what);
  }

  std::span<std::uint32_t> amaxes() override {
    const std::span words(tables_.words, host_.rows.size());
    fill_with_zeros(reinterpret_cast<std::byte*>(words.data()), words.size_bytes());
    const list_range all = {0, std::int64_t{1} << 62, 0, list_.tables.chunks};
    with_arithmetic(By, [&](auto policy) {
      launch(amax_kernel<decltype(policy)>, all, "kernel of the largest magnitudes", words.data());
    });
    return words;
  }
  void scales() override {
    launch_kernel("kernel of the scales", scales_kernel,
                  grid_for(list_.tables.tensors, list_threads, 1024), list_threads, 0, on_,
                  task_.settings, tables_.words, list_.tables.tensors, list_.scales);
  }

  void contributions(const backends::list_part& part, std::byte* communication) override {
    visit(part.format, [&](const auto& steps) {
      const auto send = [&](const auto& rounded) {
        launch(contributions_kernel<std::decay_t<decltype(rounded)>>, range_of(part),
               "kernel of contributions", task_, rounded, communication);
      };
      if (how_.rounding == rounding::stochastic) return send(steps.stochastic());
      send(steps);
    });
  }
  void sums(const backends::list_part& part, const std::byte* communication, std::int64_t share,
            std::byte* sums) override {
    visit(part.format, [&](const auto& steps) {
      launch(sums_kernel<std::decay_t<decltype(steps)>>, range_of(part),
             "kernel of sums over ranks", task_, steps, communication, share, sums);
    });
  }
  void results(const backends::list_part& part, const std::byte* sums) override {
    const auto kernel = storage_bytes(part.format) == 4 ? results_kernel<4> : results_kernel<2>;
    launch(kernel, range_of(part), "kernel of results", sums);
  }

 private:
  static constexpr const char* what = "reduce_gradients: workspace";

  /// Calls f with the steps of an element for tensors of a format.
  template <class Function>
  void visit(format_id own, const Function& f) const {
    if constexpr (By == arithmetic::by_definition) {
      f(reduction_by_definition{spec_of(own), task_.settings});
    } else {
      backends::visit_quantized(own, [&]<format_id Own>() {
        backends::visit_list_format(how_.communication, [&](auto sent) {
          f(reduction_by_hardware<Own, decltype(sent)::id, rounding::nearest_even>{how_.scale});
        });
      });
    }
  }

  /// Launches a kernel over a non-empty range.
  template <class Kernel, class... Arguments>
  void launch(Kernel kernel, const list_range& range, const char* name,
              const Arguments&... arguments) const {
    numerics::tensor_tables part = list_.tables;
    part.chunks = range.end_chunk - range.first_chunk;
    launch_kernel(name, kernel, list_blocks(part, kernel), list_threads, 0, on_, list_, range,
                  arguments...);
  }

  /// The chunk that holds the element at a position of the list.
  [[nodiscard]] std::uint64_t chunk_at(std::int64_t position) const {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), position);
    const auto tensor = static_cast<std::size_t>(after - starts_.begin() - 1);
    return host_.rows[tensor].first_chunk +
           static_cast<std::uint64_t>((position - starts_[tensor]) >> numerics::chunk_level);
  }
  [[nodiscard]] list_range range_of(const backends::list_part& part) const {
    return {part.begin, part.end, chunk_at(part.begin), chunk_at(part.end - 1) + 1};
  }

  cudaStream_t on_;
  const backends::list_data& host_;
  const gradient_reduction& how_;
  reduction_task task_;
  workspace memory_;
  list_tables tables_;
  reduction_list list_;
  std::optional<workspace> messages_;
  std::vector<std::int64_t> starts_ = {0};  ///< first position of each tensor; the list's end
};

template <arithmetic By>
void reduce_gradients(communicator& ranks, const backends::list_data& list,
                      const gradient_reduction& how) {
  if (list.elements == 0) return;
  device_steps<By> steps(ranks, list, how);
  backends::exchange_gradients(ranks, list, how, steps);
}

constexpr const char* messages = "message: copy";

/// Replaces words in host memory by their maxima over all ranks. Waits for the stream.
void all_reduce_max(communicator& ranks, std::span<std::uint32_t> words) {
  if (words.empty()) return;
  const auto on = static_cast<cudaStream_t>(ranks.stream());
  const std::size_t bytes = words.size_bytes();
  const workspace room(nullptr, bytes, on, "message: workspace");
  check(cudaMemcpyAsync(room.data(), words.data(), bytes, cudaMemcpyHostToDevice, on), messages);
  ranks.all_reduce_max({reinterpret_cast<std::uint32_t*>(room.data()), words.size()});
  check(cudaMemcpyAsync(words.data(), room.data(), bytes, cudaMemcpyDeviceToHost, on), messages);
  check(cudaStreamSynchronize(on), "work on the device");
}

/// Gathers the bytes of all ranks in host memory. Waits for the stream.
void all_gather(communicator& ranks, std::span<const std::byte> sent,
                std::span<std::byte> received) {
  if (sent.empty()) return;
  const auto on = static_cast<cudaStream_t>(ranks.stream());
  const workspace from(nullptr, sent.size(), on, "message: workspace");
  const workspace to(nullptr, received.size(), on, "message: workspace");
  check(cudaMemcpyAsync(from.data(), sent.data(), sent.size(), cudaMemcpyHostToDevice, on),
        messages);
  ranks.all_gather({from.data(), sent.size()}, {to.data(), received.size()});
  check(cudaMemcpyAsync(received.data(), to.data(), received.size(), cudaMemcpyDeviceToHost, on),
        messages);
  check(cudaStreamSynchronize(on), "work on the device");
}

}  // namespace

const backends::device_rank_functions emulated_ranks = {
    all_reduce_max, all_gather, reduce_gradients<arithmetic::by_definition>};
const backends::device_rank_functions native_ranks = {all_reduce_max, all_gather,
                                                      reduce_gradients<arithmetic::hardware>};

}  // namespace samebits::cuda
