// Every amax, all 2^31 of them, or every N-th through all scale rules, on the CPU and on the GPU:
//
//   device_scale_exhaustive STRIDE
//
// The reference is the definition in integers, on the CPU. Compared with it, by the scale of a tile
// and the code of its largest element: the widest host backend on tiles of one element,
// cuda-emulated on 1 x 16, cuda-native on 1 x 128; and in a kernel of its own the scale and factor
// by the GPU's division with those in integers. Amaxes are the codes 0 .. 7FFFFFFF, Inf and NaN
// among them, under nonfinite::propagate, so that each reaches the formulas. Prints a line for
// each; the exit status is 1 if any differ and 2 for a bad command line or a device that fails.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/instructions/hardware.cuh"
#include "device/device_copy.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/quantize/scale.hpp"
#include "samebits/samebits.hpp"

namespace samebits {
namespace {

using support::check_cuda;
using support::device_bytes;

constexpr std::uint64_t amax_end = std::uint64_t{1} << 31;
constexpr std::int64_t slice = 1 << 20;  // amaxes at a time
constexpr std::int64_t cols = 128, emulated_cols = 16;
constexpr format_id targets[] = {format_id::e4m3, format_id::e5m2};

/// The amaxes first, first + stride, ...
struct amax_range {
  std::uint32_t first, stride;
  std::int64_t count;
  __host__ __device__ std::uint32_t at(std::int64_t i) const {
    return first + static_cast<std::uint32_t>(i) * stride;
  }
};

/// Where row i holds its amax; the rest of the row is +0.
__host__ __device__ constexpr std::int64_t column_of(std::int64_t i) { return i % emulated_cols; }

__global__ void fill(amax_range amaxes, std::uint32_t* matrix) {
  const std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t row = at / cols;
  if (row < amaxes.count) matrix[at] = at % cols == column_of(row) ? amaxes.at(row) : 0;
}

struct found {
  unsigned long long differing;
  unsigned int first;  ///< amax
};

__device__ void note(found* result, std::uint32_t amax) {
  if (atomicAdd(&result->differing, 1ull) == 0) result->first = amax;
}

__global__ void count_differing(amax_range amaxes, const std::uint32_t* scales,
                                const std::uint8_t* codes, const std::uint32_t* expected_scales,
                                const std::uint8_t* expected_codes, found* result) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= amaxes.count) return;
  if (scales[i] != expected_scales[i] || codes[i * cols + column_of(i)] != expected_codes[i]) {
    note(result, amaxes.at(i));
  }
}

template <format_id To>
__global__ void compare_arithmetics(amax_range amaxes, scale_rule rule, found* result) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= amaxes.count) return;
  constexpr format_spec to = spec_of(To);
  const numerics::scale_settings settings = {rule, nonfinite::propagate};
  const auto amax = numerics::amax_contribution(nonfinite::propagate, amaxes.at(i));
  const numerics::tile_scale a = numerics::scale_of<cuda::hardware>(to, settings, amax);
  const numerics::tile_scale b = numerics::scale_of(to, settings, amax);
  if (a.dequantization_scale != b.dequantization_scale || a.factor != b.factor)
    note(result, amaxes.at(i));
}

unsigned blocks_of(std::int64_t count) { return static_cast<unsigned>((count + 255) / 256); }

/// What the amaxes of one slice become by the definition.
struct expected_slice {
  std::vector<std::uint32_t> scales;
  std::vector<std::uint8_t> codes;
};

template <format_id To>
void compute_part(const amax_range& amaxes, scale_rule rule, std::int64_t begin, std::int64_t end,
                  expected_slice& out) {
  constexpr format_spec to = spec_of(To);
  const cast_rule cast = {rounding::nearest_even, overflow::saturate, nan_policy::canonical};
  for (std::int64_t i = begin; i < end; ++i) {
    const std::uint32_t a = amaxes.at(i);
    const auto scale = numerics::scale_of(to, {rule, nonfinite::propagate},
                                          numerics::amax_contribution(nonfinite::propagate, a));
    const auto code =
        numerics::encode<std::uint32_t>(to, cast, numerics::scaled(rule, scale, a), 0).code;
    out.scales[static_cast<std::size_t>(i)] = scale.dequantization_scale;
    out.codes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(code);
  }
}

void compute_expected(const amax_range& amaxes, format_id to, scale_rule rule,
                      expected_slice& out) {
  const std::int64_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> workers;
  for (std::int64_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      const std::int64_t begin = amaxes.count * t / threads;
      const std::int64_t end = amaxes.count * (t + 1) / threads;
      if (to == format_id::e4m3) {
        compute_part<format_id::e4m3>(amaxes, rule, begin, end, out);
      } else {
        compute_part<format_id::e5m2>(amaxes, rule, begin, end, out);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
}

struct comparison_counts {
  std::string what;
  std::uint64_t compared = 0, differing = 0;
  std::uint32_t first = 0;

  void add(std::int64_t count, const found& f) {
    compared += static_cast<std::uint64_t>(count);
    if (differing == 0) first = f.first;
    differing += f.differing;
  }
};

class sweep {
 public:
  sweep() {
    for (const backend_info& b : compiled_backends()) {
      if (b.space == memory_space::host && b.supported) host_ = b.name;
    }
  }
  /// Every target and scale rule over one slice; counts in the order of names().
  void run(const amax_range& amaxes, std::vector<comparison_counts>& counts) {
    fill<<<blocks_of(amaxes.count * cols), 256>>>(amaxes, matrix_.as<std::uint32_t>());
    check_cuda(cudaGetLastError(), "fill");
    std::vector<std::uint32_t> host_amaxes(static_cast<std::size_t>(amaxes.count));
    for (std::int64_t i = 0; i < amaxes.count; ++i) {
      host_amaxes[static_cast<std::size_t>(i)] = amaxes.at(i);
    }
    auto t = counts.begin();
    for (const format_id to : targets) {
      for (int m = 0; m < one_level_scale_rules; ++m) {
        const auto rule = static_cast<scale_rule>(m);
        expected_.scales.resize(host_amaxes.size());
        expected_.codes.resize(host_amaxes.size());
        compute_expected(amaxes, to, rule, expected_);
        expected_scales_ = device_bytes(expected_.scales.data(), expected_.scales.size() * 4);
        expected_codes_ = device_bytes(expected_.codes.data(), expected_.codes.size());
        (t++)->add(amaxes.count, on_host(host_amaxes, to, rule));
        for (const char* backend : {"cuda-emulated", "cuda-native"}) {
          (t++)->add(amaxes.count, on_device(backend, amaxes, to, rule));
        }
        (t++)->add(amaxes.count, in_a_kernel(amaxes, to, rule));
      }
    }
  }

  [[nodiscard]] std::vector<comparison_counts> counts() const {
    std::vector<comparison_counts> all;
    for (const format_id to : targets) {
      for (int m = 0; m < one_level_scale_rules; ++m) {
        const std::string head =
            std::string(name(to)) + " " + std::string(name(static_cast<scale_rule>(m))) + ", ";
        for (const std::string& subject :
             {host_, std::string("cuda-emulated"), std::string("cuda-native"),
              std::string("GPU division and integers in a kernel")}) {
          all.push_back({head + subject});
        }
      }
    }
    return all;
  }

 private:
  static quantize_options options_of(std::int64_t tile_cols, scale_rule rule) {
    return {.tile = {1, tile_cols}, .scale = rule, .nonfinite = nonfinite::propagate};
  }

  found on_host(const std::vector<std::uint32_t>& amaxes, format_id to, scale_rule rule) {
    const auto count = static_cast<std::int64_t>(amaxes.size());
    std::vector<std::uint32_t> scales(amaxes.size());
    std::vector<std::uint8_t> codes(amaxes.size());
    const void* data = amaxes.data();
    quantize(view_of_codes(format_id::fp32, data, count, 1),
             {.codes = view_of_codes(to, codes.data(), count, 1),
              .scales = view_of_codes(format_id::fp32, scales.data(), count, 1)},
             options_of(16, rule), {host_, 0, nullptr});
    found f{0, 0};
    if (scales == expected_.scales && codes == expected_.codes) return f;
    for (std::size_t i = 0; i < amaxes.size(); ++i) {
      if (scales[i] == expected_.scales[i] && codes[i] == expected_.codes[i]) continue;
      if (f.differing++ == 0) f.first = amaxes[i];
    }
    return f;
  }

  found on_device(const char* backend, const amax_range& amaxes, format_id to, scale_rule rule) {
    const bool native = std::string(backend) == "cuda-native";
    const std::int64_t width = native ? cols : emulated_cols;
    const void* data = matrix_.data();
    const_matrix_view in =
        on_device_view(view_of_codes(format_id::fp32, data, amaxes.count, width));
    matrix_view codes = on_device_view(view_of_codes(to, codes_.data(), amaxes.count, width));
    in.row_stride = codes.row_stride = cols;
    codes_.fill(0x55);
    scales_.fill(0x55);
    quantize(
        in,
        {.codes = codes,
         .scales = on_device_view(view_of_codes(format_id::fp32, scales_.data(), amaxes.count, 1))},
        options_of(width, rule), on_stream(nullptr, backend));
    found_.fill(0);
    count_differing<<<blocks_of(amaxes.count), 256>>>(
        amaxes, scales_.as<std::uint32_t>(), codes_.as<std::uint8_t>(),
        expected_scales_.as<std::uint32_t>(), expected_codes_.as<std::uint8_t>(),
        found_.as<found>());
    return end_count();
  }

  found in_a_kernel(const amax_range& amaxes, format_id to, scale_rule rule) {
    found_.fill(0);
    const unsigned blocks = blocks_of(amaxes.count);
    if (to == format_id::e4m3) {
      compare_arithmetics<format_id::e4m3><<<blocks, 256>>>(amaxes, rule, found_.as<found>());
    } else {
      compare_arithmetics<format_id::e5m2><<<blocks, 256>>>(amaxes, rule, found_.as<found>());
    }
    return end_count();
  }

  template <class View>
  static View on_device_view(View v) {
    v.space = memory_space::device;
    return v;
  }
  [[nodiscard]] found end_count() const {
    check_cuda(cudaGetLastError(), "the comparison");
    found f{};
    check_cuda(cudaMemcpy(&f, found_.data(), sizeof f, cudaMemcpyDeviceToHost), "from the device");
    return f;
  }

  std::string host_;
  expected_slice expected_;
  device_bytes matrix_{slice * cols * 4}, scales_{slice * 4}, codes_{slice * cols};
  device_bytes expected_scales_, expected_codes_, found_{sizeof(found)};
};

std::uint64_t run(std::uint64_t stride) {
  sweep device;
  std::vector<comparison_counts> counts = device.counts();
  const std::uint64_t total = (amax_end + stride - 1) / stride;
  for (std::uint64_t begin = 0; begin < total; begin += slice) {
    const auto count = static_cast<std::int64_t>(std::min<std::uint64_t>(slice, total - begin));
    device.run(
        {static_cast<std::uint32_t>(begin * stride), static_cast<std::uint32_t>(stride), count},
        counts);
  }
  std::uint64_t differing = 0;
  for (const comparison_counts& t : counts) {
    std::printf("%s: compared %llu, differing %llu", t.what.c_str(),
                static_cast<unsigned long long>(t.compared),
                static_cast<unsigned long long>(t.differing));
    if (t.differing != 0) std::printf(", the first at amax %08X", t.first);
    std::printf("\n");
    differing += t.differing;
  }
  std::printf("%s\n", differing == 0 ? "PASSED" : "FAILED");
  return differing;
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) try {
  if (argc != 2) throw std::invalid_argument("usage: device_scale_exhaustive STRIDE");
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
    throw std::runtime_error(std::string("no usable GPU: ") + cudaGetErrorString(error));
  }
  const std::uint64_t stride = std::stoull(argv[1]);
  if (stride == 0 || stride >= samebits::amax_end) {
    throw std::invalid_argument("STRIDE must be in 1 .. 2^31 - 1");
  }
  return samebits::run(stride) == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
