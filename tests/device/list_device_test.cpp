// Operations over tensor lists on each CUDA backend where random cases do not reach: long lists, all
// codes, the launches of a cast. device.list_large has the largest tensors.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/device_test.hpp"
#include "engine/cases/lists.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits::support {
namespace {

class ListDevice : public DeviceTest {};

TEST_P(ListDevice, OfManyAndOfLargeTensors) {
  for (int i = 0; i < list_call_count; ++i) {
    expect_host_bits(large_lists(static_cast<list_call>(i), by_effort<std::size_t>(10'000, 1000)));
  }
}

TEST_P(ListDevice, CastsEveryCodeByEveryRule) {
  expect_host_bits(casts_of_every_code(by_effort<std::size_t>(1, 61)));
}

/// Rows of up to 300 elements on the device, in memory that no call reads.
struct device_list {
  device_list(std::size_t tensors, const std::vector<format_id>& formats)
      : host(tensors * apart), copy(host.data(), host.size()) {
    std::vector<matrix_view> views;
    for (std::size_t i = 0; i < tensors; ++i) {
      std::byte* const first = static_cast<std::byte*>(copy.data()) + i * apart + i % 8;
      const auto cols = static_cast<std::int64_t>(i * 37 % 301);
      views.push_back({first, formats[i % formats.size()], 1, cols, cols, 1, memory_space::device});
    }
    list = tensor_list(views);
  }

  static constexpr std::size_t apart = 300 * sizeof(float) + 8;
  std::vector<std::byte> host;
  guarded_copy copy;
  tensor_list list;
};

TEST_P(ListDevice, ACastIsOneLaunch) {
  using enum format_id;
  const own_stream stream;
  for (const bool mixed : {false, true}) {
    const device_list from(60,
                           mixed ? std::vector{fp32, fp16, bf16, e4m3, e5m2} : std::vector{fp32});
    const device_list to(60, mixed ? std::vector{bf16, e5m2, fp32} : std::vector{e4m3});
    for (const rounding round : {rounding::nearest_even, rounding::upward, rounding::stochastic}) {
      const captured_graph graph(stream.get(), [&] {
        cast(from.list, to.list, {.rounding = round}, on_stream(stream.get(), GetParam()));
      });
      EXPECT_EQ(graph.nodes(), 1u) << "mixed " << mixed << ", " << name(round);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ListDevice, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
