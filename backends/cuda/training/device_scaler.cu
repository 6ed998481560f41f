// device_loss_scaler: argument checks, the scaler's memory, and the kernels that each call
// enqueues.
#include "samebits/device_loss_scaler.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "backends/api/lists/list_checks.hpp"
#include "backends/api/view_checks.hpp"
#include "backends/cuda/common/allocation.hpp"
#include "backends/cuda/common/cuda.hpp"
#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/common/runtime.hpp"
#include "backends/cuda/common/workspace.hpp"
#include "backends/cuda/instructions/hardware.cuh"
#include "backends/cuda/tensor_list/list.hpp"
#include "backends/cuda/training/scaler_kernels.cuh"
#include "backends/cuda/training/shard_memory.cuh"
#include "backends/dispatch/access.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/loss_scaler/report_ring.hpp"
#include "backends/loss_scaler/resident.hpp"
#include "backends/ranks/shard_layout.hpp"
#include "backends/self_test/self_test.hpp"
#include "numerics/loss_scale/decide.hpp"

namespace samebits {

/// The list, settings, device memory and report ring of a device_loss_scaler.
struct device_loss_scaler::memory {
  tensor_list list;
  scaling_settings settings;
  double max_norm = 0;
  std::uint32_t fingerprint = 0;  ///< hash of the settings
  bool agreed = false;            ///< agree() was called since the last decide()
  std::uint32_t capacity = 0;
  int device_number = 0;  ///< device of the scaler's memory
  cuda::arithmetic by = cuda::arithmetic::hardware;
  cuda::list_layout shape = cuda::list_layout::any;
  cuda::allocation device, host;
  cuda::inspection_memory inspection = {};
  cuda::step_memory* step = nullptr;
  std::byte* resident = nullptr;  ///< the policy's resident_scaler, in device memory
  numerics::report_slot* ring = nullptr;
  std::optional<backends::report_reader> reader;
  std::optional<shard_layout> layout;  ///< if gradients are sharded over ranks
  std::optional<cuda::shard_memory> shards;

  /// Makes the scaler's device current until the end of the scope. Throws for a stream of another
  /// device.
  [[nodiscard]] backends::device_scope scope(
      void* stream, backends::completion ends = backends::completion::enqueued) const {
    return backends::device_scope(memory_space::device, device_number, stream, ends);
  }
  /// Sends this rank's message to all ranks: its observation and the partial sums of its shards.
  void agree_on_shards(communicator& ranks);
  /// Enqueues the decision from the messages of all ranks.
  void decide_on_shards(cudaStream_t stream);

  [[nodiscard]] cuda::decision_task task() const {
    return {inspection.tensors, list.size(), step, ring, capacity, max_norm};
  }

  [[nodiscard]] cuda::scaler_policy policy() const { return {settings, resident}; }
};

namespace {

/// Throws unless the list lies in device memory. A rank may have no gradients: an empty list has no
/// memory.
void check_on_device(const tensor_list& list, const char* which) {
  if (list.size() == 0 || list.space() == memory_space::device) return;
  throw invalid_argument(std::string(which) + ": must lie in device memory");
}

/// Throws unless the shard layout describes these tensors.
void check_layout(const shard_layout& shards, const tensor_list& gradients) {
  const std::vector<std::uint64_t>& here = backends::data_of(shards).here;
  if (here.size() != gradients.size()) {
    throw invalid_argument("options.shards: is of " + std::to_string(here.size()) +
                           " tensors, gradients are " + std::to_string(gradients.size()));
  }
  for (std::size_t i = 0; i < here.size(); ++i) {
    const auto count = static_cast<std::uint64_t>(backends::data_of(gradients).rows[i].count);
    if (here[i] == count) continue;
    throw invalid_argument("options.shards: holds " + std::to_string(here[i]) + " elements of " +
                           backends::tensor_text(gradients[i], i, "gradients") + ", which has " +
                           std::to_string(count));
  }
}

}  // namespace

device_loss_scaler::device_loss_scaler(tensor_list gradients, const scaling_settings& settings,
                                       const device_scaler_options& options)
    : device_loss_scaler(std::move(gradients), loss_scaler(settings), options) {}

device_loss_scaler::device_loss_scaler(tensor_list gradients, const loss_scaler& from,
                                       const device_scaler_options& options)
    : memory_(std::make_unique<memory>()) {
  if (!(options.max_norm >= 0)) throw invalid_argument("options.max_norm: must be a number >= 0");
  if (options.reports == 0) throw invalid_argument("options.reports: must be 1 or more");
  backends::check_list(gradients, "gradients", backends::number_formats);
  check_on_device(gradients, "gradients");
  if (options.shards) check_layout(*options.shards, gradients);
  const backends::device_scope on(memory_space::device, backends::data_of(gradients).device,
                                  nullptr);
  const backends::backend& backend =
      backends::resolve({options.backend, 1, nullptr}, memory_space::device,
                        [](const backends::backend& b) { return b.inspect.run != nullptr; });
  backends::check_memory(backend, memory_space::device);
  backends::require_tested(backend);

  memory& m = *memory_;
  m.device_number = cuda::runtime.current_device();
  m.list = std::move(gradients);
  m.settings = from.settings();
  m.max_norm = options.max_norm;
  m.fingerprint = backends::settings_word(m.settings);
  m.capacity = options.reports;
  m.by = &backend == &cuda::emulated ? cuda::arithmetic::by_definition : cuda::arithmetic::hardware;
  m.shape = cuda::shape_of(backends::data_of(m.list).rows);
  const numerics::tensor_tables tables = backends::data_of(m.list).tables();
  std::vector<std::byte> resident(backends::resident_bytes(m.settings));
  const auto lay_out = [&](cuda::memory_layout layout) {
    m.step = layout.take<cuda::step_memory>(1);
    m.inspection = cuda::inspection_in(layout, tables);
    m.resident = layout.take<std::byte>(resident.size());
    return layout.bytes();
  };
  const std::size_t bytes = lay_out({});
  lay_out(cuda::memory_layout(m.device.on_device(bytes, "memory of a loss scaler")));
  m.ring = reinterpret_cast<numerics::report_slot*>(m.host.on_host(
      m.capacity * sizeof(numerics::report_slot), "memory of a loss scaler's reports"));
  m.reader.emplace(std::span<const numerics::report_slot>(m.ring, m.capacity), from.updates());

  m.layout = options.shards;
  if (m.layout) m.shards.emplace(backends::data_of(*m.layout));

  cuda::step_memory step = {};
  backends::store_resident(from, resident.data(), &step.words);
  cuda::memory.upload(m.resident, resident.data(), resident.size());
  cuda::memory.upload(m.step, &step, sizeof(step));
}

device_loss_scaler::~device_loss_scaler() = default;

const float* device_loss_scaler::scale() const {
  const std::uint32_t& scale = memory_->step->words.scale;  // only an address in device memory
  return reinterpret_cast<const float*>(&scale);
}

const step_report* device_loss_scaler::decision() const { return &memory_->step->decision; }

void device_loss_scaler::observe_losses(const float* losses, std::int64_t count, void* stream) {
  if (count < 0) throw invalid_argument("count: must not be negative");
  if (count == 0) return;
  if (losses == nullptr) throw invalid_argument("losses: must not be null");
  const backends::device_scope on = memory_->scope(stream);
  backends::device_finder finder(memory_space::device);
  finder.add_device(memory_->device_number, "the scaler");
  finder.add(losses, "losses");
  constexpr std::int64_t max_blocks = 1024;
  const std::int64_t blocks = (count + cuda::loss_threads - 1) / cuda::loss_threads;
  cuda::launch_kernel("kernel of the losses", cuda::losses_kernel,
                      static_cast<unsigned>(blocks < max_blocks ? blocks : max_blocks),
                      cuda::loss_threads, 0, static_cast<cudaStream_t>(stream), losses, count,
                      &memory_->step->words);
}

void device_loss_scaler::inspect(void* stream) {
  const memory& m = *memory_;
  const backends::device_scope on = m.scope(stream);
  const auto enqueue = m.shards ? cuda::enqueue_chunk_statistics : cuda::enqueue_tensor_statistics;
  enqueue(backends::data_of(m.list).tables(), m.shape, inspect_counts::nonfinite, m.inspection,
          m.by, stream);
}

void device_loss_scaler::agree(communicator& ranks) {
  if (ranks.space() != memory_space::device) {
    throw invalid_argument("ranks: must work on device memory");
  }
  memory& m = *memory_;
  const backends::device_scope on = m.scope(ranks.stream());
  if (m.shards) {
    m.agree_on_shards(ranks);
    m.agreed = true;
    return;
  }
  cuda::with_arithmetic(m.by, [&](auto arithmetic) {
    cuda::launch_kernel("kernel of the message to other ranks",
                        cuda::message_kernel<decltype(arithmetic)>, 1, cuda::total_threads, 0,
                        static_cast<cudaStream_t>(ranks.stream()), m.fingerprint, m.policy(),
                        m.task(), ranks.rank());
  });
  numerics::agreement_message& message = m.step->agreement;  // only an address in device memory
  ranks.all_reduce_max({reinterpret_cast<std::uint32_t*>(&message), numerics::agreement_words});
  m.agreed = true;
}

void device_loss_scaler::decide(void* stream) {
  memory& m = *memory_;
  if (m.shards && !m.agreed) {
    throw call_order_error("decide(): gradients are sharded, agree(ranks) must come before it");
  }
  const auto who = m.agreed ? cuda::observer::all_ranks : cuda::observer::this_rank;
  const backends::device_scope scope = m.scope(stream);
  const auto on = static_cast<cudaStream_t>(stream);
  if (m.shards) {
    m.decide_on_shards(on);
    m.agreed = false;
    return;
  }
  cuda::with_arithmetic(m.by, [&](auto arithmetic) {
    cuda::launch_kernel("decide kernel", cuda::decide_kernel<decltype(arithmetic)>, 1,
                        cuda::total_threads, 0, on, m.policy(), m.task(), who);
  });
  m.agreed = false;
}

void device_loss_scaler::step(void* stream) {
  if (memory_->shards) {
    throw call_order_error("step(stream): gradients are sharded, call step(ranks)");
  }
  inspect(stream);
  decide(stream);
}

void device_loss_scaler::step(communicator& ranks) {
  inspect(ranks.stream());
  agree(ranks);
  decide(ranks.stream());
}

void device_loss_scaler::apply(const tensor_list& tensors, void* stream) {
  backends::check_list(tensors, "tensors", backends::number_formats);
  check_on_device(tensors, "tensors");
  const backends::device_scope on = memory_->scope(stream);
  backends::device_finder finder(memory_space::device);
  finder.add_device(memory_->device_number, "the scaler");
  finder.add_device(backends::data_of(tensors).device, "tensors");
  const step_report& decision = memory_->step->decision;  // only addresses in device memory
  cuda::scale_factor factor;
  factor.pointer = reinterpret_cast<const std::uint32_t*>(&decision.grad_mul);
  factor.only_if = &decision.applied;
  cuda::enqueue_scale(backends::data_of(tensors).tables(), factor, nullptr, memory_->by, stream);
}

std::optional<step_report> device_loss_scaler::poll() { return memory_->reader->poll(); }

std::uint64_t device_loss_scaler::lost() const { return memory_->reader->lost(); }

loss_scaler device_loss_scaler::on_host(void* stream) const {
  const memory& m = *memory_;
  const backends::device_scope on = m.scope(stream, backends::completion::awaited);
  cuda::check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "work on the device");
  std::vector<std::byte> resident(backends::resident_bytes(m.settings));
  cuda::memory.download(resident.data(), m.resident, resident.size());
  return backends::load_resident(m.settings, resident.data());
}

std::string device_loss_scaler::save(void* stream) const { return on_host(stream).save(); }

const scaling_settings& device_loss_scaler::settings() const { return memory_->settings; }

const tensor_list& device_loss_scaler::gradients() const { return memory_->list; }

// Gradients that are sharded over ranks.

void device_loss_scaler::memory::agree_on_shards(communicator& ranks) {
  if (ranks.rank() != layout->rank() || ranks.size() != layout->ranks()) {
    throw invalid_argument(
        "ranks: is rank " + std::to_string(ranks.rank()) + " of " + std::to_string(ranks.size()) +
        ", options.shards were laid out for rank " + std::to_string(layout->rank()) + " of " +
        std::to_string(layout->ranks()));
  }
  const cuda::shard_tables& t = shards->tables();
  constexpr std::uint64_t small_of_block = cuda::partial_sum_threads / 32, max_blocks = 1024;
  const std::uint64_t wanted = std::max(
      {std::uint64_t{1}, t.wide_count, (t.own_count + small_of_block - 1) / small_of_block});
  cuda::with_arithmetic(by, [&](auto arithmetic) {
    cuda::launch_kernel("kernel of the message to other ranks",
                        cuda::shard_message_kernel<decltype(arithmetic)>,
                        static_cast<unsigned>(std::min(wanted, max_blocks)),
                        cuda::partial_sum_threads, 0, static_cast<cudaStream_t>(ranks.stream()),
                        inspection.partial_statistics, t, fingerprint, policy(), task());
  });
  const std::size_t bytes = layout->message_bytes();
  ranks.all_gather(
      {reinterpret_cast<const std::byte*>(t.sent), bytes},
      {reinterpret_cast<std::byte*>(t.received), bytes * static_cast<std::size_t>(ranks.size())});
}

void device_loss_scaler::memory::decide_on_shards(cudaStream_t stream) {
  cuda::with_arithmetic(by, [&](auto arithmetic) {
    cuda::launch_kernel("decide kernel", cuda::decide_shards_kernel<decltype(arithmetic)>, 1,
                        cuda::total_threads, 0, stream, policy(), task(), shards->tables());
  });
}

}  // namespace samebits
