// Chooses an algorithm of cuBLASLt: times all that do not split K, fastest first compares up
// to 4,096 results with matmul() on the host, and keeps the first one that is equal.
//
// The operands of the comparison are random. The device and the host compute each element by itself.
// The second half of K repeats the first half, with the opposite sign in lines of A and B that a
// random bit chooses. Where one of the two lines is chosen, the exact sum is 0: the result consists of
// roundings, and another order of the sum gives another result.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/common/allocation.hpp"
#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/common/runtime.hpp"
#include "backends/cuda/matmul/cublaslt.hpp"
#include "backends/cuda/matmul/plan.hpp"
#include "numerics/bits/random.hpp"

namespace samebits::cuda {
namespace {

constexpr const char* what = "matmul_plan";
constexpr std::int64_t sampled_lines = 64, sampled_results = 4096;

/// Elements of K that are repeated: whole tiles of 128 if scales change along K. 0: none.
std::int64_t repeated(const backends::matmul_call& call) {
  const bool tiles = call.a_scales.tile.cols == 128 || call.b_scales.tile.rows == 128;
  return tiles ? call.a.cols / 256 * 128 : call.a.cols / 2;
}

/// An operand of the comparison: [lines, K] codes of random signs, magnitudes of 2^-6 to 2^2.
struct random_operand {
  format_id format;
  std::uint64_t seed;
  std::int64_t k, half;  ///< half: repeated(); what is left behind twice as many is 0

  SAMEBITS_HD std::uint32_t code(std::int64_t line, std::int64_t at) const {
    const format_spec f = spec_of(format);
    if (half > 0 && at >= 2 * half) return 0;
    const bool second = at >= half && at < 2 * half;
    const std::uint32_t word =
        numerics::random_word(seed, static_cast<std::uint64_t>(line),
                              static_cast<std::uint64_t>(second ? at - half : at), 32);
    const std::uint32_t exponent = static_cast<std::uint32_t>(f.bias - 6) + (word >> 20) % 8;
    const std::uint32_t mantissa = word & ((1u << f.mantissa_bits) - 1);
    const std::uint32_t negated =
        numerics::random_word(seed + 10, 0, static_cast<std::uint64_t>(line), 1);
    const std::uint32_t sign = (word >> 31) ^ (second ? negated : 0);
    return sign << (f.storage_bits - 1) | exponent << f.mantissa_bits | mantissa;
  }
};

/// Fills memory of `lines` by K elements; strides in elements.
__global__ void draw_kernel(std::byte* data, random_operand of, std::int64_t lines,
                            std::int64_t line_stride, std::int64_t k_stride) {
  const int bytes = storage_bytes(of.format);
  const std::int64_t n = lines * of.k, step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
    const std::int64_t line = i / of.k, at = i % of.k;
    store_code(data + (line * line_stride + at * k_stride) * bytes, bytes, of.code(line, at));
  }
}

std::int64_t elements_spanned(const const_matrix_view& v) {
  return (v.rows - 1) * v.row_stride + (v.cols - 1) * v.col_stride + 1;
}

/// Memory for a view like `v`, at an address with the alignment of v's.
const_matrix_view allocated(allocation& memory, const const_matrix_view& v) {
  const std::size_t skew = reinterpret_cast<std::uintptr_t>(v.data) % 256;
  const auto bytes = static_cast<std::size_t>(elements_spanned(v) * storage_bytes(v.format));
  const_matrix_view own = v;
  own.data = memory.on_device(bytes + skew, what) + skew;
  return own;
}

void draw(const const_matrix_view& lines, const random_operand& of, cudaStream_t stream) {
  auto* const data = static_cast<std::byte*>(const_cast<void*>(lines.data));
  launch_kernel(what, draw_kernel, 1024, 256, 0, stream, data, of, lines.rows, lines.row_stride,
                lines.col_stride);
}

/// Some numbers below n, evenly, first and last among them.
std::vector<std::int64_t> sampled(std::int64_t n, std::int64_t count) {
  std::vector<std::int64_t> all;
  count = std::min(n, count);
  for (std::int64_t i = 0; i < count; ++i)
    all.push_back(count == 1 ? 0 : i * (n - 1) / (count - 1));
  return all;
}

/// The lines of an operand that the host multiplies, and their scales, one for each tile of K.
struct host_lines {
  std::vector<std::byte> codes;
  std::vector<float> scales;
  std::int64_t tiles = 1;  ///< of K

  host_lines(const random_operand& of, const std::vector<std::int64_t>& lines) {
    for (const std::int64_t line : lines) {
      for (std::int64_t at = 0; at < of.k; ++at) {
        const std::uint32_t code = of.code(line, at);
        const auto* const first = reinterpret_cast<const std::byte*>(&code);  // its lowest
        codes.insert(codes.end(), first, first + storage_bytes(of.format));
      }
    }
  }
};

/// Puts random scales of an operand into device memory, and those of the host's lines into `host`.
/// Scales along K repeat as the operand does. `of_lines`: the scales with lines in rows.
const_matrix_view draw_scales(allocation& memory, const backends::scale_source& s,
                              const const_matrix_view& of_lines, const tile_shape& tile,
                              std::uint64_t seed, std::int64_t half,
                              const std::vector<std::int64_t>& lines, host_lines& host) {
  if (s.values.data == nullptr) return s.values;
  std::vector<float> all(static_cast<std::size_t>(elements_spanned(of_lines)));
  const std::int64_t tiles = half / 128;
  const auto place = [&](std::int64_t row, std::int64_t t) {
    return static_cast<std::size_t>(row * of_lines.row_stride + t * of_lines.col_stride);
  };
  for (std::int64_t row = 0; row < of_lines.rows; ++row) {
    for (std::int64_t t = 0; t < of_lines.cols; ++t) {
      const bool second = of_lines.cols > 1 && t >= tiles && t < 2 * tiles;
      const std::uint32_t word =
          numerics::random_word(seed, static_cast<std::uint64_t>(row),
                                static_cast<std::uint64_t>(second ? t - tiles : t), 32);
      const std::uint32_t bits = (word & 0x7FFFFFu) | (124 + (word >> 26) % 4) << 23;
      std::memcpy(&all[place(row, t)], &bits, sizeof bits);
    }
  }
  host.tiles = of_lines.cols;
  for (const std::int64_t line : lines) {
    const std::int64_t row = tile.rows == 0 ? 0 : line / tile.rows;
    for (std::int64_t t = 0; t < of_lines.cols; ++t) {
      host.scales.push_back(all[place(row, t)]);
    }
  }
  const_matrix_view own = s.values;
  std::byte* to = memory.on_device(all.size() * sizeof(float), what);
  check(cudaMemcpy(to, all.data(), all.size() * sizeof(float), cudaMemcpyHostToDevice), what);
  own.data = to;
  return own;
}

/// A product of random operands on the device, and some of its results by the rule.
class comparison {
 public:
  comparison(const backends::matmul_call& call, cudaStream_t stream)
      : call_(call),
        rows_(sampled(call.a.rows, std::max(sampled_lines, sampled_results / call.b.cols))),
        cols_(sampled(call.b.cols, sampled_results / static_cast<std::int64_t>(rows_.size()))) {
    const std::int64_t half = repeated(call);
    const random_operand a = {call.a.format, 1, call.a.cols, half};
    const random_operand b = {call.b.format, 2, call.a.cols, half};
    call_.a = allocated(a_memory_, call.a);
    call_.b = allocated(b_memory_, call.b);
    const const_matrix_view d = allocated(d_memory_, call.d);
    call_.d.data = const_cast<void*>(d.data);
    draw(call_.a, a, stream);
    draw(transposed(call_.b), b, stream);
    host_lines a_lines(a, rows_), b_lines(b, cols_);
    const tile_shape b_tile = {call.b_scales.tile.cols, call.b_scales.tile.rows};
    call_.a_scales.values = draw_scales(a_scales_, call.a_scales, call.a_scales.values,
                                        call.a_scales.tile, 3, half, rows_, a_lines);
    call_.b_scales.values = draw_scales(b_scales_, call.b_scales, transposed(call.b_scales.values),
                                        b_tile, 4, half, cols_, b_lines);
    multiply_on_host(a_lines, b_lines);
    check(cudaStreamSynchronize(stream), what);
  }

  /// The call on the random operands.
  [[nodiscard]] const backends::matmul_call& call() const { return call_; }

  /// How many sampled results of d differ from the rule's.
  [[nodiscard]] std::size_t differing(cudaStream_t stream) const {
    const auto bytes = static_cast<std::size_t>(storage_bytes(call_.d.format));
    std::vector<std::byte> row(static_cast<std::size_t>(call_.d.cols) * bytes);
    std::size_t count = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const auto* from = static_cast<const std::byte*>(call_.d.data) +
                         static_cast<std::size_t>(rows_[i] * call_.d.row_stride) * bytes;
      check(cudaMemcpyAsync(row.data(), from, row.size(), cudaMemcpyDeviceToHost, stream), what);
      check(cudaStreamSynchronize(stream), what);
      for (std::size_t j = 0; j < cols_.size(); ++j) {
        count += std::memcmp(&row[static_cast<std::size_t>(cols_[j]) * bytes],
                             &expected_[(i * cols_.size() + j) * bytes], bytes) != 0;
      }
    }
    return count;
  }
  [[nodiscard]] std::size_t results() const { return rows_.size() * cols_.size(); }

 private:
  void multiply_on_host(const host_lines& a, const host_lines& b) {
    const auto m = static_cast<std::int64_t>(rows_.size());
    const auto n = static_cast<std::int64_t>(cols_.size());
    const auto scales = [](const host_lines& h, std::int64_t lines) {
      return h.scales.empty() ? const_matrix_view{}
                              : const_matrix_view(view_of(h.scales.data(), lines, h.tiles));
    };
    // a scale for each line and tile of 128 of K, or for each line
    const auto depth = [](const backends::scale_source& s, std::int64_t along) {
      return s.values.data != nullptr && along == 128 ? 128 : 0;
    };
    expected_.resize(static_cast<std::size_t>(m * n * storage_bytes(call_.d.format)));
    matmul(view_of_codes(call_.a.format, a.codes.data(), m, call_.a.cols),
           transposed(view_of_codes(call_.b.format, b.codes.data(), n, call_.a.cols)),
           view_of_codes(call_.d.format, expected_.data(), m, n), call_.sum,
           {.a_scales = {scales(a, m), {1, depth(call_.a_scales, call_.a_scales.tile.cols)}},
            .b_scales = {transposed(scales(b, n)),
                         {depth(call_.b_scales, call_.b_scales.tile.rows), 1}},
            .scale_order = call_.order},
           {{}, 0});
  }

  backends::matmul_call call_;
  std::vector<std::int64_t> rows_, cols_;
  allocation a_memory_, b_memory_, d_memory_, a_scales_, b_scales_;
  std::vector<std::byte> expected_;
};

/// A stream of its own, and the time of work on it, without the host's.
class stopwatch {
 public:
  stopwatch() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), what);
    for (cudaEvent_t& event : events_) check(cudaEventCreate(&event), what);
  }
  ~stopwatch() {
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
    cudaStreamDestroy(stream_);
  }
  stopwatch(const stopwatch&) = delete;
  stopwatch& operator=(const stopwatch&) = delete;

  /// Milliseconds of 16 times enqueue(stream), the least of the rounds.
  template <class Enqueue>
  float time(int rounds, const Enqueue& enqueue) const {
    enqueue(stream_);  // what is loaded by the first call cannot be captured
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), what);
    try {
      for (int i = 0; i < 16; ++i) enqueue(stream_);
    } catch (...) {
      if (cudaStreamEndCapture(stream_, &graph) == cudaSuccess) cudaGraphDestroy(graph);
      throw;
    }
    check(cudaStreamEndCapture(stream_, &graph), what);
    const cudaError_t made = cudaGraphInstantiate(&replay, graph, 0);
    cudaGraphDestroy(graph);
    check(made, what);
    float best = 0;
    for (int round = 0; round <= rounds; ++round) {  // the first one warms up
      float milliseconds = 0;
      cudaEventRecord(events_[0], stream_);
      cudaGraphLaunch(replay, stream_);
      cudaEventRecord(events_[1], stream_);
      check(cudaEventSynchronize(events_[1]), what);
      check(cudaEventElapsedTime(&milliseconds, events_[0], events_[1]), what);
      if (round == 1 || milliseconds < best) best = milliseconds;
    }
    cudaGraphExecDestroy(replay);
    return best;
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t events_[2] = {};
};

/// Positions of the algorithms, fastest first; what the library refuses to run is left out. The first
/// ones are timed again, for up to 0.4 s each or 3 rounds: their times differ by less than those of a
/// few rounds scatter.
std::vector<std::size_t> by_time(const lt_product& product, const backends::matmul_call& call,
                                 const std::vector<lt_algorithm>& all) {
  constexpr std::size_t timed_again = 8;
  const stopwatch watch;
  const auto time = [&](std::size_t position, int rounds) {
    return watch.time(rounds, [&](cudaStream_t stream) {
      product.run(all[position].algo, call, nullptr, 0, stream);
    });
  };
  std::vector<std::pair<float, std::size_t>> times;
  for (std::size_t i = 0; i < all.size(); ++i) {
    try {
      times.emplace_back(time(i, 3), i);
    } catch (const cuda_error&) {  // offered, and then refused
    }
  }
  std::sort(times.begin(), times.end());
  const auto first = times.begin(), last = first + std::min(timed_again, times.size());
  for (auto one = first; one != last; ++one) {
    one->first = time(one->second, std::clamp(static_cast<int>(400 / one->first), 3, 20));
  }
  std::sort(first, last);
  std::vector<std::size_t> order;
  for (const auto& [milliseconds, position] : times) order.push_back(position);
  return order;
}

class checked_product final : public backends::device_product {
 public:
  checked_product(const cublaslt& lt, const backends::matmul_call& call, lt_algorithm by)
      : device_product(std::move(by.text)), lt_(lt), product_(lt, call), algo_(by.algo) {}

  void run(const backends::matmul_call& call, void* on) const override {
    const auto stream = static_cast<cudaStream_t>(on);
    if (call.a_scales.values.data == nullptr) {
      return product_.run(algo_, call, nullptr, 0, stream);
    }
    lt_product(lt_, call).run(algo_, call, nullptr, 0, stream);  // with the scales' addresses
  }

 private:
  const cublaslt& lt_;
  const lt_product product_;
  cublasLtMatmulAlgo_t algo_;
};

}  // namespace

std::shared_ptr<const backends::device_product> plan_product(const backends::matmul_call& call,
                                                             void* on_stream) {
  const auto stream = static_cast<cudaStream_t>(on_stream);
  if (const int capability = code_of_current_device().capability; capability != 90) {
    throw unsupported("matmul_plan: no rule is known for products of GPUs of compute capability " +
                      std::to_string(capability / 10) + "." + std::to_string(capability % 10) +
                      ", only of 9.0");
  }
  const cublaslt& lt = library_of_current_device();
  const comparison compared(call, stream);
  const lt_product product(lt, compared.call());
  const std::vector<lt_algorithm> all = product.algorithms(0);
  std::string refused;
  for (const std::size_t i : by_time(product, compared.call(), all)) {
    product.run(all[i].algo, compared.call(), nullptr, 0, stream);
    const std::size_t differing = compared.differing(stream);
    if (differing == 0) return std::make_shared<checked_product>(lt, call, all[i]);
    refused += "\n  " + all[i].text + ": " + std::to_string(differing) + " of " +
               std::to_string(compared.results()) + " results differ";
  }
  throw unsupported("matmul_plan: no algorithm has the bits of the rule" + refused);
}

}  // namespace samebits::cuda
