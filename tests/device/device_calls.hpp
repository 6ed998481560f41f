// Every kind of call on device memory, as a list: what it is given, and what it leaves behind.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "device/device_copy.hpp"
#include "samebits/array_arithmetic.hpp"
#include "samebits/codebook.hpp"
#include "samebits/convert.hpp"
#include "samebits/device_loss_scaler.hpp"
#include "samebits/evaluate.hpp"
#include "samebits/operators.hpp"
#include "samebits/optimizer.hpp"
#include "samebits/quantize.hpp"
#include "samebits/quantize_list.hpp"
#include "samebits/reductions.hpp"
#include "samebits/row_functions.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits::support {

/// Makes a device current until the end of the scope.
class current_device {
 public:
  explicit current_device(int device) {
    check_cuda(cudaGetDevice(&before_), "cudaGetDevice");
    check_cuda(cudaSetDevice(device), "cudaSetDevice");
  }
  ~current_device() { cudaSetDevice(before_); }
  current_device(const current_device&) = delete;
  current_device& operator=(const current_device&) = delete;

 private:
  int before_ = 0;
};

/// The memory of the calls below on one device. A test may replace an address by another one.
class call_memory {
 public:
  static constexpr std::int64_t rows = 4, cols = 256, elements = rows * cols;
  static constexpr std::size_t part_bytes = elements * sizeof(float);

  explicit call_memory(int device) : device_(device) {
    const current_device on(device);
    std::vector<float> values(elements);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = (static_cast<float>(i % 97) - 40.0f) * 0.37f;
    }
    for (void** part : parts()) {
      check_cuda(cudaMalloc(part, part_bytes), "cudaMalloc");
      check_cuda(cudaMemset(*part, 0, part_bytes), "cudaMemset");
    }
    for (void* part : {x, y}) {
      check_cuda(cudaMemcpy(part, values.data(), part_bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    }
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    owned_ = {x, y, halves, codes, scales, result};
  }
  ~call_memory() {
    for (void* part : owned_) cudaFree(part);
  }
  call_memory(const call_memory&) = delete;
  call_memory& operator=(const call_memory&) = delete;

  [[nodiscard]] int device() const { return device_; }
  [[nodiscard]] std::array<void**, 6> parts() {
    return {&x, &y, &halves, &codes, &scales, &result};
  }
  /// Everything in the memory, once the device has done what was enqueued.
  [[nodiscard]] std::vector<std::byte> contents() const {
    const current_device on(device_);
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::vector<std::byte> all(owned_.size() * part_bytes);
    for (std::size_t i = 0; i < owned_.size(); ++i) {
      check_cuda(cudaMemcpy(&all[i * part_bytes], owned_[i], part_bytes, cudaMemcpyDeviceToHost),
                 "cudaMemcpy");
    }
    return all;
  }

  [[nodiscard]] matrix_view view(void* data, format_id format) const {
    return on_device(view_of_codes(format, data, rows, cols));
  }
  [[nodiscard]] matrix_view values() const { return view(x, format_id::fp32); }
  [[nodiscard]] matrix_view others() const { return view(y, format_id::fp32); }
  [[nodiscard]] matrix_view rounded() const { return view(halves, format_id::bf16); }
  [[nodiscard]] quantize_outputs outputs() const {
    return {.codes = view(codes, format_id::e4m3),
            .scales = on_device(view_of_codes(format_id::fp32, scales, rows, cols / 128))};
  }

  void* x = nullptr;       ///< fp32
  void* y = nullptr;       ///< fp32
  void* halves = nullptr;  ///< bf16
  void* codes = nullptr;   ///< e4m3
  void* scales = nullptr;  ///< fp32, of 1 x 128 tiles
  void* result = nullptr;  ///< statistics, sums or flags

 private:
  int device_;
  std::array<void*, 6> owned_ = {};
};

struct device_call {
  const char* name;
  /// What the call is given; in the order in which it looks at them.
  std::vector<void * call_memory::*> given;
  bool awaited;  ///< the call returns its result
  /// Makes lists and scalers, and returns the call itself.
  std::function<std::function<void(const executor&)>(const call_memory&)> prepare;

  void run(const call_memory& memory, const executor& where = {}) const { prepare(memory)(where); }
};

namespace detail {

/// A call that needs nothing but its memory.
template <class Call>
auto direct(const Call& call) {
  return [call](const call_memory& d) -> std::function<void(const executor&)> {
    return [call, &d](const executor& where) { call(d, where); };
  };
}

/// A call over lists of one tensor each.
template <class Call>
auto over_lists(const Call& call) {
  return [call](const call_memory& d) -> std::function<void(const executor&)> {
    const auto list = [](const matrix_view& v) { return tensor_list({{v, "tensor"}}); };
    return [call, x = list(d.values()), y = list(d.others()),
            halves = list(d.rounded())](const executor& where) { call(x, y, halves, where); };
  };
}

inline std::function<void(const executor&)> prepared_list(const call_memory& d) {
  const quantize_list list({{.in = d.values(), .outputs = d.outputs()}}, {.tile = {1, 128}});
  return [list](const executor& where) { quantize(list, where); };
}

inline std::function<void(const executor&)> prepared_scaler(const call_memory& d) {
  const auto scaler = std::make_shared<device_loss_scaler>(tensor_list({{d.values(), "tensor"}}));
  return [scaler](const executor& where) { (void)scaler->on_host(where.stream); };
}

inline std::function<void(const executor&)> prepared_step(const call_memory& d) {
  const auto scaler = std::make_shared<device_loss_scaler>(tensor_list({{d.values(), "tensor"}}));
  return [scaler, values = tensor_list({{d.values(), "tensor"}})](const executor& where) {
    scaler->step(where.stream);
    scaler->apply(values, where.stream);
  };
}

/// A step of SGD: weights x, gradient y.
inline std::function<void(const executor&)> prepared_update(const call_memory& d) {
  const optimizer_tensor tensor = {.weights = {d.x, stored_format::fp32},
                                   .gradient = {d.y, stored_format::fp32},
                                   .count = call_memory::elements};
  const optimizer_list list({tensor}, memory_space::device);
  return [list](const executor& where) {
    const optimizer_settings sgd = {.rule = update_rule::sgd};
    optimizer_step(list, {&sgd, 1}, {}, where);
  };
}

}  // namespace detail

inline std::vector<device_call> device_calls() {
  using m = call_memory;
  using w = const executor&;
  using p = const tensor_list&;
  using detail::direct, detail::over_lists;
  constexpr bool enqueued = false, awaited = true;
  return {
      {"convert", {&m::x, &m::halves}, enqueued, direct([](const m& d, w where) {
         convert(d.values(), d.rounded(), {}, where);
       })},
      {"convert to e4m3", {&m::x, &m::codes}, enqueued, direct([](const m& d, w where) {
         convert(d.values(), d.outputs().codes, {}, where);
       })},
      {"compute", {&m::y, &m::x}, enqueued, direct([](const m& d, w where) {
         compute(operation::add, {d.values(), d.others()}, d.others(), {}, where);
       })},
      {"evaluate", {&m::x, &m::y}, enqueued, direct([](const m& d, w where) {
         evaluate(function::tanh, d.values(), d.others(), {.rule = function_rule::cuda_13_0},
                  where);
       })},
      {"evaluate_gradient", {&m::x, &m::y}, enqueued, direct([](const m& d, w where) {
         evaluate_gradient(function::gelu, d.others(), d.values(), d.others(),
                           {.rule = function_rule::torch_2_11}, where);
       })},
      {"softmax", {&m::x, &m::y}, enqueued, direct([](const m& d, w where) {
         softmax(d.values(), d.others(), {.rule = function_rule::torch_2_11}, where);
       })},
      {"layer_norm_gradient", {&m::y, &m::x, &m::result}, enqueued, direct([](const m& d, w where) {
         const const_matrix_view one{d.result, format_id::fp32,     m::rows, 1, 1,
                                     1,        memory_space::device};
         layer_norm_gradient(d.others(), d.values(), one, one, {}, d.others(),
                             {.rule = function_rule::torch_2_11}, where);
       })},
      {"gated", {&m::y, &m::x}, enqueued, direct([](const m& d, w where) {
         gated(function::silu, d.others(), d.values(), d.others(), function_rule::torch_2_11,
               where);
       })},
      {"add_rms_norm", {&m::y, &m::x}, enqueued, direct([](const m& d, w where) {
         add_rms_norm(d.values(), d.others(), {}, d.values(), d.others(), {},
                      {.rule = function_rule::torch_2_11}, where);
       })},
      {"compute_with_flags", {&m::y, &m::x}, awaited, direct([](const m& d, w where) {
         (void)compute_with_flags(operation::mul, {d.values(), d.others()}, d.others(), {}, {},
                                  where);
       })},
      {"enqueue_compute_with_flags",
       {&m::y, &m::x, &m::result},
       enqueued,
       direct([](const m& d, w where) {
         enqueue_compute_with_flags(operation::div, {d.values(), d.others()}, d.others(),
                                    static_cast<std::uint32_t*>(d.result), {}, {}, where);
       })},
      {"amax", {&m::x}, awaited, direct([](const m& d, w where) {
         (void)amax(d.values(), where);
       })},
      {"counts", {&m::x}, awaited, direct([](const m& d, w where) {
         (void)counts(d.values(), where);
       })},
      {"dot", {&m::x, &m::y}, awaited, direct([](const m& d, w where) {
         (void)dot(d.values(), d.others(), {}, where);
       })},
      {"enqueue_sum", {&m::x, &m::result}, enqueued, direct([](const m& d, w where) {
         enqueue_sum(d.values(), static_cast<double*>(d.result), {}, where);
       })},
      {"quantize_blocks", {&m::x, &m::codes, &m::scales}, enqueued, direct([](const m& d, w where) {
         quantize_blocks(d.values(), {}, {static_cast<std::uint8_t*>(d.codes), m::elements / 2},
                         {static_cast<float*>(d.scales), m::elements / 64}, where);
       })},
      {"dequantize_blocks", {&m::y, &m::codes, &m::x}, enqueued, direct([](const m& d, w where) {
         const std::span<const float> absmax{static_cast<float*>(d.x), m::elements / 64};
         dequantize_blocks({static_cast<std::uint8_t*>(d.codes), m::elements / 2}, absmax, {},
                           d.others(), where);
       })},
      {"quantize", {&m::x, &m::codes, &m::scales}, enqueued, direct([](const m& d, w where) {
         quantize(d.values(), d.outputs(), {.tile = {1, 128}}, where);
       })},
      {"quantize with statistics",
       {&m::x, &m::codes, &m::scales, &m::result},
       enqueued,
       direct([](const m& d, w where) {
         quantize_outputs outputs = d.outputs();
         outputs.statistics = static_cast<quantize_statistics*>(d.result);
         quantize(d.values(), outputs, {.tile = {1, 128}}, where);
       })},
      {"dequantize", {&m::codes, &m::scales, &m::y}, enqueued, direct([](const m& d, w where) {
         dequantize(d.outputs().codes, d.outputs().scales, d.others(), {1, 128}, where);
       })},
      {"quantize a list", {&m::x, &m::codes, &m::scales}, enqueued, detail::prepared_list},
      {"inspect", {&m::x}, awaited, over_lists([](p x, p, p, w where) {
         (void)inspect(x, {}, where);
       })},
      {"unscale", {&m::x}, awaited, over_lists([](p x, p, p, w where) {
         (void)unscale(x, 0.5f, where);
       })},
      {"clip", {&m::x}, awaited, over_lists([](p x, p, p, w where) { (void)clip(x, 1.0, where); })},
      {"scale", {&m::x}, enqueued, over_lists([](p x, p, p, w where) { scale(x, 0.5f, where); })},
      {"axpby", {&m::y, &m::x}, enqueued, over_lists([](p x, p y, p, w where) {
         axpby(0.5f, x, 2.0f, y, y, where);
       })},
      {"accumulate", {&m::y, &m::x}, enqueued, over_lists([](p x, p y, p, w where) {
         accumulate(y, x, {}, where);
       })},
      {"cast", {&m::halves, &m::x}, enqueued, over_lists([](p x, p, p halves, w where) {
         cast(x, halves, {}, where);
       })},
      {"evaluate a list", {&m::y, &m::x}, enqueued, over_lists([](p x, p y, p, w where) {
         evaluate(function::exp, x, y, {}, where);
       })},
      {"evaluate_gradient of a list",
       {&m::y, &m::x},
       enqueued,
       over_lists([](p x, p y, p, w where) {
         evaluate_gradient(function::gelu, y, x, y, {.rule = function_rule::torch_2_11}, where);
       })},
      {"optimizer_step", {&m::x, &m::y}, enqueued, detail::prepared_update},
      {"device_loss_scaler::step", {&m::x}, enqueued, detail::prepared_step},
      {"device_loss_scaler::state", {&m::x}, awaited, detail::prepared_scaler},
  };
}

}  // namespace samebits::support
