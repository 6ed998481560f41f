// Calls that fail after they began to write: what they throw, and that a loss scaler does not go on
// from there. A backend of this program simulates a GPU that fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/dispatch/backend.hpp"
#include "backends/dispatch/calls/list.hpp"
#include "backends/self_test/self_test.hpp"
#include "samebits/samebits.hpp"
#include "support/refusal.hpp"

namespace {

using namespace samebits;

bool gpu_fails = false;
std::string gpu_is_missing;

void scale_half(const backends::scale_call& call, const executor&) {
  auto* x = static_cast<float*>(call.list.tensors[0].view.data);
  const auto count = static_cast<std::int64_t>(call.list.elements);
  for (std::int64_t i = 0; i < (gpu_fails ? count / 2 : count); ++i) x[i] *= call.factor;
  if (gpu_fails) throw cuda_error("cudaMemcpy: the GPU fell off the bus", 719);
  if (call.report != nullptr) call.report->elements = call.list.elements;
}

const backends::device_memory memory = {
    [](std::size_t bytes) { return std::malloc(bytes); },
    [](void* p) noexcept { std::free(p); },
    [](void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); },
    [](void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); },
    nullptr,
    nullptr};

constinit backends::self_test_entry tested = {[](backends::probe_report& report) { report = {}; }};

const backends::backend gpu = {
    .name = "simulated-gpu",
    .description = "a GPU that fails",
    .space = memory_space::device,
    .why_unsupported = [] { return gpu_is_missing; },
    .self_test = &tested,
    .convert = {.run = [](const backends::convert_call&, const executor&) {}},
    .scale = {.run = scale_half},
    .memory = &memory};

}  // namespace

extern "C" const backends::backend* const* samebits_cuda_backends() {
  static const backends::backend* const all[] = {&gpu, nullptr};
  return all;
}

namespace samebits {
namespace {

class InterruptedUnscale : public ::testing::Test {
 protected:
  InterruptedUnscale() { gpu_fails = true; }
  ~InterruptedUnscale() override { gpu_fails = false; }

  std::vector<float> g = std::vector<float>(8, 65536.0f);
  tensor_list gradients = tensor_list({{on_device(view_of(g))}});
  loss_scaler scaler;
};

constexpr auto refusal = [](const auto& call) {
  return support::refusal_of<call_order_error>(call);
};

TEST_F(InterruptedUnscale, IsNotRepeated) {
  EXPECT_THROW(scaler.unscale(gradients, "adam"), cuda_error);
  EXPECT_EQ(g.front(), 1.0f);
  EXPECT_EQ(g.back(), 65536.0f);
  gpu_fails = false;
  const auto refused = [&](const std::string& name, const std::function<void()>& call) {
    const std::string text = refusal(call);
    EXPECT_NE(text.find(name + "(): an unscale() of the gradients of optimizer 'adam' failed"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("discard()"), std::string::npos) << text;
  };
  single_rank ranks;
  refused("unscale", [&] { scaler.unscale(gradients, "adam"); });
  refused("observe", [&] { scaler.observe({}, "adam"); });
  refused("step", [&] { scaler.step([] {}, "adam"); });
  refused("agree", [&] { scaler.agree(ranks, "adam"); });
  refused("update", [&] { scaler.update(); });
  EXPECT_THROW(static_cast<void>(scaler.save()), call_order_error);
  EXPECT_EQ(g.front(), 1.0f);  // nothing was unscaled twice

  std::fill(g.begin(), g.end(), 65536.0f);  // computed again
  scaler.discard("adam");
  EXPECT_EQ(scaler.unscale(gradients, "adam").elements, 8u);
  EXPECT_EQ(g, std::vector<float>(8, 1.0f));
  EXPECT_TRUE(scaler.step([] {}, "adam"));
  EXPECT_TRUE(scaler.update().apply);
}

TEST_F(InterruptedUnscale, OtherOptimizersAreNotAffectedUntilTheUpdate) {
  EXPECT_THROW(scaler.unscale(gradients, "adam"), cuda_error);
  std::vector<float> h(4, 65536.0f);
  scaler.unscale(view_of(h), "sgd");
  EXPECT_TRUE(scaler.step([] {}, "sgd"));
  EXPECT_NE(refusal([&] { scaler.update(); }), "");
  scaler.discard("adam");
  EXPECT_TRUE(scaler.update().apply);
}

TEST_F(InterruptedUnscale, RefusedArgumentsDoNotInterrupt) {
  std::vector<double> wide(3);
  EXPECT_THROW(scaler.unscale(view_of(wide)), invalid_argument);
  EXPECT_THROW(scaler.unscale(gradients, {}, {"abacus"}), invalid_argument);
  EXPECT_EQ(refusal([&] { scaler.update(); }).find("failed"), std::string::npos);
  scaler.discard();  // has nothing to do
  std::vector<float> h(4, 65536.0f);
  EXPECT_EQ(scaler.unscale({view_of(h)}).elements, 4u);
  EXPECT_NE(refusal([&] { scaler.discard(); }), "");
  EXPECT_NE(refusal([&] { scaler.discard(); }), "");
}

/// A run of one rank whose network fails in message number `last`.
class failing_rank final : public communicator {
 public:
  explicit failing_rank(int last) : left_(last) {}
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }
  void all_reduce_max(std::span<std::uint32_t>) override {}
  void all_gather(std::span<const std::byte> sent, std::span<std::byte> received) override {
    std::memcpy(received.data(), sent.data(), sent.size());
  }
  void all_to_all(std::span<const std::byte> sent, std::span<std::byte> received) override {
    if (left_-- == 0) throw std::runtime_error("no route to host");
    std::memcpy(received.data(), sent.data(), sent.size());
  }

 private:
  int left_;
};

TEST(ReduceGradients, SaysWhetherItHasWritten) {
  const gradient_reduction how = {
      .communication = format_id::fp32, .factor = 0.5f, .elements_at_once = 4};
  std::vector<float> g(8, 2.0f);
  failing_rank at_once(0);
  try {
    reduce_gradients(at_once, view_of(g), how);
    FAIL();
  } catch (const incomplete_write&) {
    FAIL() << "nothing was written";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "no route to host");
  }
  EXPECT_EQ(g, std::vector<float>(8, 2.0f));
  failing_rank later(1);
  try {
    reduce_gradients(later, view_of(g), how);
    FAIL();
  } catch (const incomplete_write& error) {
    EXPECT_NE(std::string(error.what()).find("reduce_gradients()"), std::string::npos);
    try {
      std::rethrow_if_nested(error);
      FAIL() << "no cause";
    } catch (const std::runtime_error& cause) {
      EXPECT_STREQ(cause.what(), "no route to host");
    }
  }
  EXPECT_EQ(g, (std::vector<float>{1, 1, 1, 1, 2, 2, 2, 2}));
}

/// The environment names a backend for the memory in which that works.
class EnvironmentBackend : public ::testing::Test {
 protected:
  EnvironmentBackend() { unsetenv("SAMEBITS_BACKEND"); }
  ~EnvironmentBackend() override {
    unsetenv("SAMEBITS_BACKEND");
    gpu_is_missing.clear();
  }
  static void convert_on(memory_space space) {
    float x = 1.0f;
    e4m3 y;
    const matrix_view in = view_of(&x, 1, 1), out = view_of(&y, 1, 1);
    if (space == memory_space::device) return convert(on_device(in), on_device(out));
    convert(in, out);
    EXPECT_EQ(static_cast<float>(y), 1.0f);
  }
};

TEST_F(EnvironmentBackend, OfADeviceHasNoSayOnHostMemory) {
  const std::string usual(default_executor().backend);
  for (const char* missing : {"", "no GPU"}) {
    gpu_is_missing = missing;
    setenv("SAMEBITS_BACKEND", "simulated-gpu", 1);
    EXPECT_NO_THROW(convert_on(memory_space::host));
    EXPECT_EQ(default_executor().backend, usual);
  }
  EXPECT_THROW(convert_on(memory_space::device), unsupported);
}

TEST_F(EnvironmentBackend, OfTheHostHasNoSayOnADevice) {
  for (const backend_info& b : compiled_backends()) {
    if (b.space != memory_space::host) continue;
    setenv("SAMEBITS_BACKEND", std::string(b.name).c_str(), 1);
    EXPECT_NO_THROW(convert_on(memory_space::device)) << b.name;  // one that cannot run here, too
  }
}

}  // namespace
}  // namespace samebits
