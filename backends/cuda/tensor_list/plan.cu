// The operations of the CUDA backends over lists of tensors, as the library calls them: self-test,
// launches, and the copy of reports to the host.
#include "backends/cuda/tensor_list/plan.hpp"

#include <cuda_runtime_api.h>

#include <bit>
#include <cstddef>

#include "backends/cuda/common/cuda.hpp"
#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/workspace.hpp"
#include "backends/self_test/self_test.hpp"

namespace samebits::cuda {
namespace {

using backends::plan_data;

/// Enqueues a copy to the host. The data is there after finish().
template <class T>
void download(T* host, const T* device, std::size_t count, cudaStream_t stream) {
  check(cudaMemcpyAsync(host, device, count * sizeof(T), cudaMemcpyDeviceToHost, stream),
        "copy a report from the device");
}
/// Waits for the stream.
void finish(cudaStream_t stream) { check(cudaStreamSynchronize(stream), "work on the device"); }

template <arithmetic By>
const backends::backend& self() {
  return By == arithmetic::hardware ? native : emulated;
}

template <arithmetic By>
inspect_report inspect(const plan_data& plan, inspect_counts counts, void* stream) {
  backends::require_tested(self<By>(), stream);
  const auto on = static_cast<cudaStream_t>(stream);
  const numerics::plan_tables tables = plan.tables();
  const workspace room(nullptr, inspection_bytes(tables), on, "inspect: workspace");
  const inspection_memory memory = inspection_in(room.data(), tables);
  enqueue_tensor_statistics(tables, shape_of(plan.rows), counts, memory, By, stream);
  enqueue_total(tables, memory, By, stream);
  inspect_report report;
  report.tensors.resize(plan.rows.size());
  inspection all = {};
  download(report.tensors.data(), memory.tensors, report.tensors.size(), on);
  download(&all, memory.all, 1, on);
  if (counts == inspect_counts::distribution && !plan.rows.empty()) {
    download(report.exponents.data(), memory.exponents, report.exponents.size(), on);
  }
  finish(on);
  report.total = all.total;
  report.first_bad = all.first_bad;
  return report;
}

template <arithmetic By>
void scale(const plan_data& plan, float factor, unscale_report* report, void* stream) {
  backends::require_tested(self<By>(), stream);
  const auto on = static_cast<cudaStream_t>(stream);
  const scale_factor by = {std::bit_cast<std::uint32_t>(factor)};
  if (report == nullptr) return enqueue_scale(plan.tables(), by, nullptr, By, stream);
  const workspace room(nullptr, sizeof(unscale_report), on, "unscale: workspace");
  auto* const seen = reinterpret_cast<unscale_report*>(room.data());
  constexpr unscale_report nothing = {};
  check(cudaMemcpyAsync(seen, &nothing, sizeof(nothing), cudaMemcpyHostToDevice, on),
        "clear a report on the device");
  enqueue_scale(plan.tables(), by, seen, By, stream);
  download(report, seen, 1, on);
  finish(on);
  report->elements = plan.elements;
}

template <arithmetic By>
void axpby(const backends::axpby_call& call, void* stream) {
  backends::require_tested(self<By>(), stream);
  enqueue_axpby(call, By, stream);
}

template <arithmetic By>
void accumulate(const backends::accumulate_call& call, void* stream) {
  backends::require_tested(self<By>(), stream);
  enqueue_accumulate(call, By, stream);
}

template <arithmetic By>
void cast(const backends::cast_call& call, void* stream) {
  backends::require_tested(self<By>(), stream);
  enqueue_cast(call, By, stream);
}

}  // namespace

const backends::device_plan_kernels emulated_plans = {
    .inspect = inspect<arithmetic::by_definition>,
    .scale = scale<arithmetic::by_definition>,
    .axpby = axpby<arithmetic::by_definition>,
    .accumulate = accumulate<arithmetic::by_definition>,
    .cast = cast<arithmetic::by_definition>,
};

const backends::device_plan_kernels native_plans = {
    .inspect = inspect<arithmetic::hardware>,
    .scale = scale<arithmetic::hardware>,
    .axpby = axpby<arithmetic::hardware>,
    .accumulate = accumulate<arithmetic::hardware>,
    .cast = cast<arithmetic::hardware>,
};

}  // namespace samebits::cuda
