// 2^30 random elements quantized on each CUDA backend, against the widest host backend, every byte;
// and of the host's result a part against the reference. Every tile by every rule and rounding.
//
// SAMEBITS_QUANTIZE_ELEMENTS in the environment makes it another number of elements, in matrices of
// other sizes and, above 2^32, in more of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "device/device_copy.hpp"
#include "device/quantize_batches.hpp"
#include "samebits/samebits.hpp"
#include "support/backends.hpp"
#include "support/effort.hpp"

namespace samebits::support {
namespace {

using engine = std::mt19937_64;

/// Runs job(0), job(1), ... on all CPU threads.
template <class Job>
void run_jobs(std::size_t jobs, const Job& job) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> workers;
  for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t) {
    workers.emplace_back([&] {
      for (std::size_t i = next++; i < jobs; i = next++) job(i);
    });
  }
}

/// Two numbers of the standard normal distribution.
std::pair<float, float> normal_pair(engine& random) {
  const std::uint64_t r = random();
  const float u = (static_cast<float>(r >> 40) + 1.0f) * 0x1p-24f;
  const float angle = static_cast<float>(r & 0xFFFFFF) * (6.2831853f * 0x1p-24f);
  const float radius = std::sqrt(-2.0f * std::log(u));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

/// binary32 bits: some hundred elements after another are zeros, NaN, Inf, tiny or huge.
void overwrite_spans(engine& random, std::vector<std::uint32_t>& x, std::size_t begin,
                     std::size_t end) {
  constexpr std::uint32_t patterns[] = {0x00000000, 0x7FC00001, 0x7F800000, 0x00000001,
                                        0x7F7F0000, 0x00800000, 0x7F800001, 0x38800000};
  for (std::size_t at = begin + random() % 2000; at < end; at += random() % 3000) {
    const std::uint64_t r = random();
    const std::size_t stop = std::min<std::size_t>(end, at + r % 400);
    const std::uint32_t pattern = patterns[(r >> 32) % std::size(patterns)];
    const bool is_whole = (r >> 40) % 2 == 0;
    for (; at < stop; ++at) {
      const std::uint64_t one = random();
      if (is_whole || one % 8 == 0) x[at] = pattern | static_cast<std::uint32_t>(one >> 63) << 31;
    }
  }
}

/// Elements [begin, end) as binary32 bits.
void fill_part(content kind, std::uint64_t seed, std::vector<std::uint32_t>& x, std::size_t begin,
               std::size_t end) {
  engine random(seed);
  float size = 1.0f;
  for (std::size_t i = begin; i + 1 < end; i += 2) {
    if (kind == content::any_bits) {
      const std::uint64_t r = random();
      x[i] = static_cast<std::uint32_t>(r);
      x[i + 1] = static_cast<std::uint32_t>(r >> 32);
      continue;
    }
    if ((i - begin) % 512 == 0) {
      const int exponent = kind == content::wide ? static_cast<int>(random() % 277) - 149
                                                 : static_cast<int>(random() % 12) - 8;
      size = std::ldexp(1.0f, exponent);
    }
    const auto [a, b] = normal_pair(random);
    x[i] = std::bit_cast<std::uint32_t>(a * size);
    x[i + 1] = std::bit_cast<std::uint32_t>(b * size);
  }
  if (kind == content::spans) overwrite_spans(random, x, begin, end);
}

/// The batch's matrix in its source format.
std::vector<std::byte> matrix_of(const batch& b) {
  const auto count = static_cast<std::size_t>(b.rows * b.cols);
  std::vector<std::uint32_t> wide((count + 1) / 2 * 2);
  constexpr std::size_t parts = 256;
  const std::size_t step = (wide.size() / parts + 2) / 2 * 2;
  run_jobs(parts, [&](std::size_t i) {
    fill_part(b.kind, b.number * parts + i, wide, std::min(wide.size(), i * step),
              std::min(wide.size(), (i + 1) * step));
  });
  const auto width = static_cast<std::size_t>(storage_bytes(b.from));
  std::vector<std::byte> matrix(count * width);
  if (b.kind == content::any_bits || b.from == format_id::fp32) {
    std::memcpy(matrix.data(), wide.data(), matrix.size());
  } else {
    const void* data = wide.data();
    convert(view_of_codes(format_id::fp32, data, b.rows, b.cols),
            view_of_codes(b.from, matrix.data(), b.rows, b.cols), {}, {{}, 0, nullptr});
  }
  return matrix;
}

/// What a batch becomes, in host memory.
struct result {
  explicit result(const batch& b)
      : shape(scales_shape(b.rows, b.cols, b.options.tile)),
        codes(static_cast<std::size_t>(b.rows * b.cols), std::byte{0x55}),
        scales(static_cast<std::size_t>(shape.rows * shape.cols * 4), std::byte{0x55}),
        codes_transposed(b.transposed ? codes.size() : 0, std::byte{0x55}),
        scales_transposed(b.transposed ? scales.size() : 0, std::byte{0x55}),
        statistics(b.counts ? sizeof(quantize_statistics) : 0, std::byte{0x55}) {}

  quantize_outputs outputs(const batch& b) {
    quantize_outputs o{
        .codes = view_of_codes(b.to, codes.data(), b.rows, b.cols),
        .scales = view_of_codes(format_id::fp32, scales.data(), shape.rows, shape.cols)};
    if (b.counts) o.statistics = reinterpret_cast<quantize_statistics*>(statistics.data());
    if (!b.transposed) return o;
    o.codes_transposed = view_of_codes(b.to, codes_transposed.data(), b.cols, b.rows);
    o.scales_transposed =
        view_of_codes(format_id::fp32, scales_transposed.data(), shape.cols, shape.rows);
    return o;
  }
  [[nodiscard]] std::vector<const std::vector<std::byte>*> all() const {
    return {&codes, &scales, &codes_transposed, &scales_transposed, &statistics};
  }

  matrix_shape shape;
  std::vector<std::byte> codes, scales, codes_transposed, scales_transposed, statistics;
};

struct comparison_counts {
  std::uint64_t elements = 0, bytes = 0, differing = 0;
};

/// Counts bytes, and says where the first difference is.
void compare(const char* what, const batch& b, const result& got, const result& expected,
             comparison_counts& t) {
  static constexpr const char* names[] = {"codes", "scales", "transposed codes",
                                          "transposed scales", "statistics"};
  t.elements += got.codes.size();
  for (std::size_t part = 0; part < got.all().size(); ++part) {
    const std::vector<std::byte>& a = *got.all()[part];
    const std::vector<std::byte>& e = *expected.all()[part];
    t.bytes += a.size();
    if (a == e) continue;
    std::size_t first = a.size(), count = 0;
    for (std::size_t i = a.size(); i-- > 0;) {
      if (a[i] != e[i]) first = i, ++count;
    }
    t.differing += count;
    ADD_FAILURE() << what << ", " << b << ": " << count << " bytes of the " << names[part]
                  << " differ, the first is byte " << first;
  }
}

/// 128 rows of the batch by the reference: bit for bit a part of the whole.
void check_sample(const batch& b, const std::vector<std::byte>& in, const result& whole,
                  comparison_counts& t) {
  batch part = b;
  part.rows = 128;
  part.transposed = part.counts = false;
  const std::int64_t row =
      128 * static_cast<std::int64_t>(b.number % static_cast<std::uint64_t>(b.rows / 128));
  part.options.random.offset += static_cast<std::uint64_t>(row * b.cols);
  result got(part), expected(part);
  const void* from = in.data() + row * b.cols * storage_bytes(b.from);
  quantize(view_of_codes(b.from, from, part.rows, part.cols), expected.outputs(part), part.options,
           {"reference", 0, nullptr});
  std::memcpy(got.codes.data(), whole.codes.data() + row * b.cols, got.codes.size());
  const std::int64_t scale_row = row / b.options.tile.rows;
  std::memcpy(got.scales.data(), whole.scales.data() + scale_row * whole.shape.cols * 4,
              got.scales.size());
  compare("host", part, got, expected, t);
}

void quantize_on_device(const std::string& backend, const batch& b, const guarded_copy& in,
                        result& r) {
  const quantize_outputs o = r.outputs(b);
  const guarded_copy codes(o.codes), scales(o.scales), codes_transposed(o.codes_transposed),
      scales_transposed(o.scales_transposed);
  const guarded_copy statistics(o.statistics, sizeof(quantize_statistics));
  const_matrix_view from = on_device(view_of_codes(b.from, in.data(), b.rows, b.cols));
  quantize(from,
           {.codes = codes.placed(o.codes),
            .scales = scales.placed(o.scales),
            .codes_transposed = codes_transposed.placed(o.codes_transposed),
            .scales_transposed = scales_transposed.placed(o.scales_transposed),
            .statistics = static_cast<quantize_statistics*>(statistics.data())},
           b.options, on_stream(nullptr, backend));
  check_cuda(cudaDeviceSynchronize(), "the quantization");
  for (const guarded_copy* copy :
       {&codes, &scales, &codes_transposed, &scales_transposed, &statistics}) {
    copy->copy_back();
  }
}

void print(const std::string& what, const comparison_counts& t) {
  std::cout << what << ": " << t.elements << " elements, compared " << t.bytes << " bytes, "
            << t.differing << " differ\n";
}

TEST(QuantizeMany, EveryByteOf2To30Elements) {
  const char* const asked = std::getenv("SAMEBITS_QUANTIZE_ELEMENTS");
  const std::uint64_t wanted =
      asked != nullptr ? std::stoull(asked) : by_effort(std::uint64_t{1} << 30, 1 << 24);
  const std::uint64_t rounds = 1 + wanted / (std::uint64_t{1} << 32);
  const auto elements = static_cast<std::int64_t>(1 + wanted / (rounds * batch_draws::round));
  batch_draws draws;
  const std::string backends[] = {"cuda-native", "cuda-emulated"};
  const std::string host = supported_backends().back();
  comparison_counts sampled, counts[2];
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t n = 0; n < rounds * batch_draws::round && !HasFatalFailure(); ++n) {
    const batch b = draws.next(elements);
    const std::vector<std::byte> in = matrix_of(b);
    const void* data = in.data();
    result expected(b);
    quantize(view_of_codes(b.from, data, b.rows, b.cols), expected.outputs(b), b.options,
             {host, 0, nullptr});
    check_sample(b, in, expected, sampled);
    const guarded_copy device_in(in.data(), in.size(), edges::exact);
    for (int i = 0; i < 2; ++i) {
      result got(b);
      quantize_on_device(backends[i], b, device_in, got);
      compare(backends[i].c_str(), b, got, expected, counts[i]);
    }
  }
  print(host + " and reference", sampled);
  for (int i = 0; i < 2; ++i) {
    print(backends[i] + " and " + host, counts[i]);
    EXPECT_GE(counts[i].elements, wanted);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::cout << took.count() << " s\n";
}

}  // namespace
}  // namespace samebits::support
