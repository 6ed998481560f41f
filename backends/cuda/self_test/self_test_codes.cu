// The self-test of a backend's kernels: converts and quantizes a 128 x 128 matrix on the device and
// compares with the definition on the host. Kernels whose instructions this build was not compiled
// for return zeros or write nothing.
#include <cstdint>
#include <cstring>
#include <vector>

#include "backends/cuda/common/cuda.hpp"
#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/workspace.hpp"
#include "backends/cuda/quantize/quantize.hpp"
#include "backends/cuda/self_test/self_test_stream.hpp"
#include "numerics/bits/convert.hpp"
#include "numerics/quantize/scale.hpp"
#include "numerics/quantize/tile.hpp"

namespace samebits::cuda {
namespace {

using backends::convert_call;
using backends::probe_outcome;
using backends::quantize_call;
using enum format_id;

constexpr std::int64_t side = 128;  // of the square matrix
constexpr std::int64_t elements = side * side;

/// The entry points of one backend for checked calls.
struct kernels {
  void (*convert)(const convert_call& call, void* stream);
  bool (*converts)(const convert_call& call);  ///< null: every conversion
  arithmetic quantize_by;
};

/// Records the first difference.
void note(probe_outcome& outcome, std::uint64_t got, std::uint64_t expected, int bits) {
  if (got != expected && outcome.bits == 0) outcome = {got, expected, bits};
}

/// Random codes: values of both signs from 2^-20 to 2^20. Every 64th code is any code of the
/// format, so that NaN, Inf and subnormals occur.
std::vector<std::uint32_t> random_codes(format_id format) {
  std::vector<std::uint32_t> codes(elements);
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    state = state * 1664525u + 1013904223u;  // Numerical Recipes' generator
    const std::uint32_t random_word = state ^ state >> 16;
    const std::uint32_t exponent = 107 + (state >> 8) % 41;
    const std::uint32_t value = (random_word & 0x807FFFFFu) | exponent << 23;
    const format_spec f = spec_of(format);
    codes[i] = i % 64 == 0
                   ? random_word >> (32 - f.storage_bits)
                   : static_cast<std::uint32_t>(
                         numerics::convert<std::uint32_t>(spec_of(fp32), f, {}, value, 0).code);
  }
  return codes;
}

/// A matrix of codes or scales in device memory, allocated on the self-test's stream.
class device_codes {
 public:
  device_codes(format_id format, std::int64_t count, cudaStream_t stream)
      : bytes_(static_cast<std::size_t>(storage_bytes(format))),
        count_(static_cast<std::size_t>(count)),
        stream_(stream),
        memory_(nullptr, bytes_ * count_, stream, "self-test: memory") {
    check(cudaMemsetAsync(memory_.data(), 0xA5, bytes_ * count_, stream), "self-test: memory");
  }
  [[nodiscard]] void* data() const { return memory_.data(); }

  void upload(const std::vector<std::uint32_t>& codes) const {
    std::vector<std::byte> dense(bytes_ * count_);
    for (std::size_t i = 0; i < count_; ++i) std::memcpy(&dense[i * bytes_], &codes[i], bytes_);
    check(cudaMemcpyAsync(memory_.data(), dense.data(), dense.size(), cudaMemcpyHostToDevice,
                          stream_),
          "self-test: copy");
    check(cudaStreamSynchronize(stream_), "self-test: copy");
  }
  [[nodiscard]] std::vector<std::uint32_t> download() const {
    std::vector<std::byte> dense(bytes_ * count_);
    check(cudaMemcpyAsync(dense.data(), memory_.data(), dense.size(), cudaMemcpyDeviceToHost,
                          stream_),
          "self-test: copy");
    check(cudaStreamSynchronize(stream_), "self-test: kernel");
    std::vector<std::uint32_t> codes(count_);
    for (std::size_t i = 0; i < count_; ++i) std::memcpy(&codes[i], &dense[i * bytes_], bytes_);
    return codes;
  }

 private:
  std::size_t bytes_, count_;
  cudaStream_t stream_;
  workspace memory_;
};

matrix_view view_on_device(const device_codes& codes, format_id format, std::int64_t rows,
                           std::int64_t cols) {
  return on_device(view_of_codes(format, codes.data(), rows, cols));
}

/// Converts random codes and compares every result.
void probe_conversion(const kernels& by, format_id from, format_id to, overflow on_overflow,
                      cudaStream_t stream, probe_outcome& outcome) {
  const std::vector<std::uint32_t> codes = random_codes(from);
  const device_codes in(from, elements, stream), out(to, elements, stream);
  in.upload(codes);
  const convert_call call{view_on_device(in, from, side, side),
                          view_on_device(out, to, side, side),
                          {rounding::nearest_even, on_overflow, nan_policy::canonical},
                          {},
                          static_cast<std::uint64_t>(side)};
  if (by.converts != nullptr && !by.converts(call)) return;
  by.convert(call, stream);
  const std::vector<std::uint32_t> got = out.download();
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto expected =
        numerics::convert<std::uint32_t>(spec_of(from), spec_of(to), call.rule, codes[i], 0).code;
    note(outcome, got[i], expected, spec_of(to).storage_bits);
  }
}

/// Quantizes random codes and compares every code and scale. Rule te, to nearest even, saturating
/// as quantizers are by default.
void probe_quantization(const kernels& by, format_id from, format_id to, std::int64_t tile_rows,
                        cudaStream_t stream, probe_outcome& outcome) {
  const std::vector<std::uint32_t> source = random_codes(from);
  const std::int64_t tiles = side / tile_rows;  // one below the other
  const device_codes in(from, elements, stream), codes(to, elements, stream),
      scales(fp32, tiles, stream);
  in.upload(source);
  quantize_call call{};
  call.in = view_on_device(in, from, side, side);
  call.outputs.codes = view_on_device(codes, to, side, side);
  call.outputs.scales = view_on_device(scales, fp32, tiles, 1);
  call.to = to;
  call.grid = {tile_rows, side, tiles, 1};
  call.scale = {scale_rule::te, nonfinite::te, 0, numerics::binary32::inf,
                numerics::binary32::max_finite};
  call.scale_format = fp32;
  call.cast = {rounding::nearest_even, overflow::saturate, nan_policy::canonical};
  call.pitch = static_cast<std::uint64_t>(side);
  enqueue_quantize(call, by.quantize_by, stream);
  const std::vector<std::uint32_t> got = codes.download(), got_scales = scales.download();
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    const std::int64_t first = tile * tile_rows * side, end = first + tile_rows * side;
    const auto x = [&](std::int64_t i) {
      return numerics::decode<std::uint32_t>(spec_of(from), source[static_cast<std::size_t>(i)]);
    };
    numerics::tile_amax amax = numerics::no_amax;
    for (std::int64_t i = first; i < end; ++i) {
      amax = numerics::combined(amax, numerics::amax_contribution(nonfinite::te, x(i)));
    }
    const numerics::tile_scale scale = numerics::scale_of(spec_of(to), call.scale, amax);
    note(outcome, got_scales[static_cast<std::size_t>(tile)], scale.dequantization_scale, 32);
    for (std::int64_t i = first; i < end; ++i) {
      const std::uint32_t y = numerics::scaled(call.scale.rule, scale, x(i));
      const auto expected = numerics::encode<std::uint32_t>(spec_of(to), call.cast, y, 0).code;
      note(outcome, got[static_cast<std::size_t>(i)], expected, 8);
    }
  }
}

/// Runs all conversions and quantizations of the self-test.
void probe_codes(const kernels& by, backends::code_report& report) {
  report = {};
  const capture_apart apart;
  const own_stream stream;
  for (const overflow o : {overflow::ieee, overflow::saturate}) {
    for (const format_id to : {e4m3, e5m2}) {
      for (const format_id from : {fp32, fp16, bf16}) {
        probe_conversion(by, from, to, o, stream.get(), report.conversion);
      }
    }
    for (const format_id to : {fp16, bf16}) {
      for (const format_id from : {fp32, e4m3, e5m2, to == fp16 ? bf16 : fp16}) {
        probe_conversion(by, from, to, o, stream.get(), report.conversion);
      }
    }
    for (const format_id from : {e4m3, e5m2}) {
      probe_conversion(by, from, fp32, o, stream.get(), report.conversion);
    }
  }
  for (const format_id from : {fp32, bf16}) {
    for (const std::int64_t tile_rows : {std::int64_t{1}, side}) {
      probe_quantization(by, from, e4m3, tile_rows, stream.get(), report.quantization);
    }
  }
}

}  // namespace

void emulated_codes_on_device(backends::code_report& report) {
  probe_codes({launch_emulated, nullptr, arithmetic::by_definition}, report);
}

void native_codes_on_device(backends::code_report& report) {
  probe_codes({launch_native, native_supports, arithmetic::hardware}, report);
}

}  // namespace samebits::cuda
