// The loss scaler of a GPU: its memory, and the kernel that decides.
#include "samebits/device_scaler.hpp"

#include <cuda_runtime.h>

#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "backends/cuda/cuda.hpp"
#include "backends/cuda/error.hpp"
#include "backends/cuda/plan.hpp"
#include "backends/cuda/plan_total.cuh"
#include "backends/loss_scaler_checks.hpp"
#include "backends/plan_checks.hpp"
#include "backends/self_test.hpp"
#include "backends/view_checks.hpp"
#include "numerics/binary64.hpp"
#include "numerics/decide.hpp"
#include "samebits/device_report.cuh"
#include "samebits/resident_scaler.hpp"

namespace samebits {
namespace cuda {
namespace {

/// What all policies keep in device memory; their states are of different sizes.
struct scaler_words {
  step_report decision;
  float scale;
  std::uint32_t bad_loss;  ///< 1: a loss was not finite since the last decision
};

/// Where a report goes, and what it is made of besides the gradients.
struct decision_task {
  const tensor_statistics* tensors;
  std::uint64_t count;
  scaler_words* words;
  report_slot* ring;
  std::uint64_t capacity;
  double max_norm;
};

template <class Sums, class Settings, class State>
__global__ void __launch_bounds__(total_threads)
    decide_kernel(const Settings settings, resident_scaler<State>* const scaler,
                  const decision_task task) {
  __shared__ total_scratch<Sums> scratch;
  const plan_total total = total_of<Sums>(task.tensors, task.count, scratch);
  if (threadIdx.x != 0) return;
  rank_observation seen;
  seen.seen.nonfinite = total.first_bad >= 0;
  seen.seen.loss_nonfinite = task.words->bad_loss != 0;
  seen.seen.amax = total.figures.amax;
  seen.first_bad = total.first_bad;
  const norm_clipping clipping = {
      __longlong_as_double(static_cast<long long>(total.figures.squares)), task.max_norm};
  const step_report report = numerics::decide(settings, *scaler, seen, clipping);
  task.words->decision = report;
  task.words->scale =
      __uint_as_float(numerics::binary64::narrow(numerics::scale_bits(scaler->policy)));
  task.words->bad_loss = 0;
  device::put_report(task.ring, task.capacity, report);
}

constexpr int loss_threads = 256;

__global__ void __launch_bounds__(loss_threads)
    losses_kernel(const float* const losses, const std::int64_t count, scaler_words* const words) {
  bool bad = false;
  const std::int64_t step = std::int64_t{gridDim.x} * loss_threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * loss_threads + threadIdx.x; i < count;
       i += step) {
    bad = bad || (__float_as_uint(losses[i]) & 0x7FFFFFFFu) >= numerics::binary32::inf;
  }
  if (__syncthreads_or(bad ? 1 : 0) != 0 && threadIdx.x == 0) atomicOr(&words->bad_loss, 1u);
}

/// Memory of the device or of both, freed with it.
class allocation {
 public:
  allocation() = default;
  ~allocation() { release(); }
  allocation(const allocation&) = delete;
  allocation& operator=(const allocation&) = delete;

  std::byte* on_device(std::size_t bytes) {
    release();
    check(cudaMalloc(&data_, bytes), "memory of a loss scaler");
    return static_cast<std::byte*>(data_);
  }
  std::byte* on_host(std::size_t bytes) {
    release();
    shared_ = true;
    check(cudaHostAlloc(&data_, bytes, cudaHostAllocMapped | cudaHostAllocPortable),
          "memory of a loss scaler's reports");
    std::memset(data_, 0, bytes);
    return static_cast<std::byte*>(data_);
  }

 private:
  void release() {
    if (data_ == nullptr) return;
    if ((shared_ ? cudaFreeHost(data_) : cudaFree(data_)) != cudaSuccess) (void)cudaGetLastError();
    data_ = nullptr;
  }

  void* data_ = nullptr;
  bool shared_ = false;
};

std::size_t padded(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

/// The policy's state that belongs to settings.
template <class Settings>
using state_of = decltype(initial_state(std::declval<const Settings&>()));

device_scaler_state initial(const scaling_settings& settings) {
  return std::visit(
      [](const auto& s) {
        return device_scaler_state{scaling_state(initial_state(s)), 0, 0};
      },
      settings);
}

}  // namespace
}  // namespace cuda

namespace {

/// A rank may have no gradients; a plan without tensors lies nowhere.
void check_on_device(const tensor_plan& plan, const char* which) {
  if (plan.size() == 0 || plan.space() == memory_space::device) return;
  throw invalid_argument(std::string(which) + ": must lie in device memory");
}

}  // namespace

struct device_loss_scaler::memory {
  tensor_plan plan;
  scaling_settings settings;
  double max_norm = 0;
  std::uint32_t capacity = 0;
  cuda::steps by = cuda::steps::hardware;
  cuda::plan_shape shape = cuda::plan_shape::any;
  cuda::allocation device, host;
  cuda::inspection_memory inspection = {};
  cuda::scaler_words* words = nullptr;
  std::byte* resident = nullptr;  ///< resident_scaler of the policy
  report_slot* ring = nullptr;
  std::optional<report_reader> reader;
};

device_loss_scaler::device_loss_scaler(tensor_plan gradients, const scaling_settings& settings,
                                       const device_scaler_options& options)
    : device_loss_scaler(std::move(gradients), settings,
                         (check_settings(settings), cuda::initial(settings)), options) {}

device_loss_scaler::device_loss_scaler(tensor_plan gradients, const scaling_settings& settings,
                                       const device_scaler_state& from,
                                       const device_scaler_options& options)
    : memory_(std::make_unique<memory>()) {
  check_settings(settings);
  backends::check_state(settings, from.policy);
  if (!(options.max_norm >= 0)) throw invalid_argument("options.max_norm: must be a number >= 0");
  if (options.reports == 0) throw invalid_argument("options.reports: must be 1 or more");
  if (from.applied_steps > from.steps) {
    throw invalid_argument("from.applied_steps: must not exceed from.steps");
  }
  backends::check_plan(gradients, "gradients", backends::wide_plan_formats);
  check_on_device(gradients, "gradients");
  const backends::backend& backend =
      backends::resolve({options.backend, 1, nullptr}, memory_space::device,
                        [](const backends::backend& b) { return b.device_plans != nullptr; });
  backends::check_memory(backend, memory_space::device);
  backends::require_tested(backend);

  memory& m = *memory_;
  m.plan = std::move(gradients);
  m.settings = settings;
  m.max_norm = options.max_norm;
  m.capacity = options.reports;
  m.by = &backend == &cuda::emulated ? cuda::steps::definition : cuda::steps::hardware;
  m.shape = cuda::shape_of(m.plan.data().rows);
  const numerics::plan_tables tables = m.plan.data().tables();
  const std::size_t words_bytes = cuda::padded(sizeof(cuda::scaler_words));
  const std::size_t inspection_bytes = cuda::padded(cuda::inspection_bytes(tables));
  const std::size_t state_bytes = std::visit(
      [](const auto& s) { return sizeof(resident_scaler<std::remove_cvref_t<decltype(s)>>); },
      from.policy);
  std::byte* const first = m.device.on_device(words_bytes + inspection_bytes + state_bytes);
  m.words = reinterpret_cast<cuda::scaler_words*>(first);
  m.inspection = cuda::inspection_in(first + words_bytes, tables);
  m.resident = first + words_bytes + inspection_bytes;
  m.ring = reinterpret_cast<report_slot*>(m.host.on_host(m.capacity * sizeof(report_slot)));
  m.reader.emplace(std::span<const report_slot>(m.ring, m.capacity), from.steps);

  cuda::scaler_words words = {};
  std::visit(
      [&](const auto& policy) {
        const resident_scaler<std::remove_cvref_t<decltype(policy)>> resident = {
            policy, from.steps, from.applied_steps};
        words.scale = detail::number_of(numerics::binary64::narrow(numerics::scale_bits(policy)));
        cuda::memory.upload(m.resident, &resident, sizeof(resident));
      },
      from.policy);
  cuda::memory.upload(m.words, &words, sizeof(words));
}

device_loss_scaler::~device_loss_scaler() = default;

const float* device_loss_scaler::scale() const { return &memory_->words->scale; }

const step_report* device_loss_scaler::decision() const { return &memory_->words->decision; }

void device_loss_scaler::observe_losses(const float* losses, std::int64_t count, void* stream) {
  if (count < 0) throw invalid_argument("count: must not be negative");
  if (count == 0) return;
  if (losses == nullptr) throw invalid_argument("losses: must not be null");
  constexpr std::int64_t most_blocks = 1024;
  const std::int64_t blocks = (count + cuda::loss_threads - 1) / cuda::loss_threads;
  cuda::losses_kernel<<<static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks),
                        cuda::loss_threads, 0, static_cast<cudaStream_t>(stream)>>>(losses, count,
                                                                                    memory_->words);
  cuda::check(cudaPeekAtLastError(), "kernel of the losses");
}

void device_loss_scaler::inspect(void* stream) {
  cuda::enqueue_tensor_statistics(memory_->plan.data().tables(), memory_->shape,
                                  inspect_counts::nonfinite, memory_->inspection, memory_->by,
                                  stream);
}

void device_loss_scaler::decide(void* stream) {
  const memory& m = *memory_;
  const cuda::decision_task task = {m.inspection.tensors, m.plan.size(), m.words, m.ring,
                                    m.capacity,           m.max_norm};
  const auto on = static_cast<cudaStream_t>(stream);
  std::visit(
      [&](const auto& settings) {
        using settings_type = std::remove_cvref_t<decltype(settings)>;
        using state_type = cuda::state_of<settings_type>;
        auto* const resident = reinterpret_cast<resident_scaler<state_type>*>(m.resident);
        if (m.by == cuda::steps::hardware) {
          cuda::decide_kernel<cuda::hardware_sums>
              <<<1, cuda::total_threads, 0, on>>>(settings, resident, task);
        } else {
          cuda::decide_kernel<cuda::integer_sums>
              <<<1, cuda::total_threads, 0, on>>>(settings, resident, task);
        }
      },
      m.settings);
  cuda::check(cudaPeekAtLastError(), "decide kernel");
}

void device_loss_scaler::step(void* stream) {
  inspect(stream);
  decide(stream);
}

void device_loss_scaler::apply(const tensor_plan& tensors, void* stream) {
  backends::check_plan(tensors, "tensors", backends::wide_plan_formats);
  check_on_device(tensors, "tensors");
  const step_report& decision = memory_->words->decision;  // device memory: addresses alone
  cuda::scale_factor factor;
  factor.pointer = reinterpret_cast<const std::uint32_t*>(&decision.grad_mul);
  factor.only_if = &decision.applied;
  cuda::enqueue_scale(tensors.data().tables(), factor, nullptr, memory_->by, stream);
}

std::optional<step_report> device_loss_scaler::poll() { return memory_->reader->poll(); }

std::uint64_t device_loss_scaler::lost() const { return memory_->reader->lost(); }

device_scaler_state device_loss_scaler::state(void* stream) const {
  const memory& m = *memory_;
  cuda::check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "work on the device");
  return std::visit(
      [&](const auto& settings) {
        resident_scaler<cuda::state_of<std::remove_cvref_t<decltype(settings)>>> resident;
        cuda::memory.download(&resident, m.resident, sizeof(resident));
        return device_scaler_state{resident.policy, resident.steps, resident.applied_steps};
      },
      m.settings);
}

const scaling_settings& device_loss_scaler::settings() const { return memory_->settings; }

const tensor_plan& device_loss_scaler::gradients() const { return memory_->plan; }

}  // namespace samebits
