// Reductions on the CUDA backends where random cases do not reach: each place of a largest element,
// so many elements that sums are joined on several levels, a workspace of the caller's in a graph.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device_test.hpp"
#include "engine/core/strided_buffer.hpp"
#include "engine/inputs/operands.hpp"
#include "numerics/bits/hash.hpp"
#include "samebits/samebits.hpp"

namespace samebits::support {
namespace {

class DeviceReductions : public DeviceTest {};

// The largest magnitude at each position: in whole vectors of 16 bytes and behind the last one.
TEST_P(DeviceReductions, AmaxInEveryPlace) {
  for (const format_id f : arithmetic_formats) {
    const auto code = [&](float value) {
      return convert_code(format_id::fp32, f, std::bit_cast<std::uint32_t>(value)).code;
    };
    for (std::int64_t n = 1; n <= 35; ++n) {
      for (std::int64_t position = 0; position < n; ++position) {
        strided_buffer host(f, {1, n, n, 1, 0});
        for (std::int64_t i = 0; i < n; ++i) host.store(i, code(1.0f));
        host.store(position, code(-2.0f));
        const guarded_copy memory(host.view());
        ASSERT_EQ(amax(memory.placed(host.view()), {GetParam()}), 2.0f)
            << name(f) << ", element " << position << " of " << n;
      }
    }
  }
}

/// One block combines 4096 chunks; beyond 2^24 elements there is a level more.
TEST_P(DeviceReductions, SeveralLevelsOfJoining) {
  expect_host_bits(large_reductions(by_effort<std::size_t>(1, 7)));
}

/// Any length and alignment of codes of every size, in one call for more arrays than a launch has.
TEST_P(DeviceReductions, HashesAreThoseOfTheHost) {
  std::vector<std::uint64_t> data(1 << 17);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = numerics::hash_term(i, i);
  const device_bytes memory(data.data(), data.size() * 8);
  std::vector<code_array> host, device;
  for (std::int64_t i = 0; i < 300; ++i) {
    const int bytes = 1 << i % 4;
    const std::int64_t offset = i / 4 % 33 * bytes;
    const std::int64_t count = i == 7 ? 1'000'003 / bytes : i * i / 3;
    const std::uint64_t largest = i % 3 == 0 ? 0 : (std::uint64_t{1} << (8 * bytes - 1)) - 5;
    host.push_back({reinterpret_cast<std::byte*>(data.data()) + offset, count, bytes, largest});
    device.push_back({memory.data() + offset, count, bytes, largest});
  }
  std::vector<std::uint64_t> expected(host.size()), found(host.size());
  hash_codes(host, expected, memory_space::host);
  const device_bytes results(8 * found.size());
  hash_codes(device, {results.as<std::uint64_t>(), found.size()}, memory_space::device,
             {GetParam()});
  check_cuda(cudaMemcpy(found.data(), results.data(), results.size(), cudaMemcpyDeviceToHost),
             "to the host");
  EXPECT_EQ(found, expected);
}

TEST_P(DeviceReductions, AreCapturedWithAWorkspaceAndReplayed) {
  constexpr std::int64_t n = 100'001;
  strided_buffer x(format_id::bf16, dense_layout(1, n)), y = x;
  for (std::int64_t i = 0; i < n; ++i) {  // no exponent of the upper half
    x.store(i, static_cast<std::uint64_t>(i) * 40'503u & 0xBFFF);
    y.store(i, static_cast<std::uint64_t>(i) * 30'011u & 0xBFFF);
  }
  const executor reference = {"reference"};
  struct results {
    double sum = -1, squares = -1, dot = -1;
    element_counts counts;
    float amax = -1;
  } got;
  const guarded_copy device_x(x.view()), device_y(y.view()), out(&got, sizeof got);
  const matrix_view in = device_x.placed(x.view()), other = device_y.placed(y.view());
  std::vector<std::byte> memory(reduction_workspace(in));
  const guarded_copy room(memory.data(), memory.size());
  auto* const to = static_cast<results*>(out.data());
  const std::span<std::byte> workspace(static_cast<std::byte*>(room.data()), memory.size());
  const own_stream stream;
  const captured_graph graph(stream.get(), [&] {
    const executor where = on_stream(stream.get(), GetParam());
    enqueue_sum(in, &to->sum, workspace, where);
    enqueue_sum_of_squares(in, &to->squares, workspace, where);
    enqueue_dot(in, other, &to->dot, {}, workspace, where);
    enqueue_counts(in, &to->counts, where);
    enqueue_amax(in, &to->amax, where);
  });
  for (int turn = 0; turn < 2; ++turn) graph.replay();
  out.copy_back();
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  EXPECT_EQ(bits(got.sum), bits(sum(x.view(), reference)));
  EXPECT_EQ(bits(got.squares), bits(sum_of_squares(x.view(), reference)));
  EXPECT_EQ(bits(got.dot), bits(dot(x.view(), y.view(), {}, reference)));
  EXPECT_EQ(got.counts, counts(x.view(), reference));
  EXPECT_EQ(got.amax, amax(x.view(), reference));
  room.copy_back();  // throws where something was written behind the workspace
}

INSTANTIATE_TEST_SUITE_P(Backends, DeviceReductions, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
