// The operations of the CUDA backends on lists of tensors that report to the host: launches, and
// the copy of reports.
#include "backends/cuda/tensor_list/list.hpp"

#include <cuda_runtime_api.h>

#include <bit>
#include <cstddef>

#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/workspace.hpp"

namespace samebits::cuda {
namespace {

/// Enqueues a copy to the host. The data is there after finish().
template <class T>
void download(T* host, const T* device, std::size_t count, cudaStream_t stream) {
  check(cudaMemcpyAsync(host, device, count * sizeof(T), cudaMemcpyDeviceToHost, stream),
        "copy a report from the device");
}
/// Waits for the stream.
void finish(cudaStream_t stream) { check(cudaStreamSynchronize(stream), "work on the device"); }

}  // namespace

void run_inspect(const backends::inspect_call& call, arithmetic by, void* on) {
  const auto stream = static_cast<cudaStream_t>(on);
  const numerics::tensor_tables tables = call.list.tables();
  memory_layout size;
  inspection_in(size, tables);
  const workspace room(nullptr, size.bytes(), stream, "inspect: workspace");
  memory_layout layout(room.data());
  const inspection_memory memory = inspection_in(layout, tables);
  enqueue_tensor_statistics(tables, shape_of(call.list.rows), call.counts, memory, by, stream);
  enqueue_total(tables, memory, by, stream);
  inspect_report& report = *call.report;
  report = {};
  report.tensors.resize(call.list.rows.size());
  inspection all = {};
  download(report.tensors.data(), memory.tensors, report.tensors.size(), stream);
  download(&all, memory.all, 1, stream);
  if (call.counts == inspect_counts::distribution && !call.list.rows.empty()) {
    download(report.exponents.data(), memory.exponents, report.exponents.size(), stream);
  }
  finish(stream);
  report.total = all.total;
  report.first_bad = all.first_bad;
}

void run_scale(const backends::scale_call& call, arithmetic by, void* on) {
  const auto stream = static_cast<cudaStream_t>(on);
  const numerics::tensor_tables tables = call.list.tables();
  const scale_factor factor = {std::bit_cast<std::uint32_t>(call.factor)};
  if (call.report == nullptr) return enqueue_scale(tables, factor, nullptr, by, stream);
  const workspace room(nullptr, sizeof(unscale_report), stream, "unscale: workspace");
  auto* const seen = reinterpret_cast<unscale_report*>(room.data());
  constexpr unscale_report nothing = {};
  check(cudaMemcpyAsync(seen, &nothing, sizeof(nothing), cudaMemcpyHostToDevice, stream),
        "clear a report on the device");
  enqueue_scale(tables, factor, seen, by, stream);
  download(call.report, seen, 1, stream);
  finish(stream);
  call.report->elements = call.list.elements;
}

}  // namespace samebits::cuda
