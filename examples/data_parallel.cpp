// Data-parallel training on four ranks: gradients summed in an 8-bit communication dtype, one
// decision on each step, and a norm of sharded gradients. All ranks have the same bits.
//
// The ranks are threads here. A program of several processes passes its own samebits::communicator,
// three functions over MPI or NCCL. All other code stays the same.
#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "samebits/samebits.hpp"
#include "samebits/testkit/ranks.hpp"

namespace {

using samebits::communicator;
using samebits::matrix_view;

constexpr int rank_count = 4;
constexpr std::size_t width = 16384;
constexpr int steps = 60;
constexpr int broken_step = 30;  // one sample of this step is corrupt

float random_value(std::uint64_t index) {  // the same on every machine
  return static_cast<float>(samebits::random_word(1, 0, index, 16)) / 32768.0f - 1.0f;
}

/// A linear model y = w . x; the target is the sum of x. Every rank has its own sample.
struct model {
  std::vector<float> weights = std::vector<float>(width, 0.0f);
  std::vector<float> gradient = std::vector<float>(width);
  float error = 0;
  std::uint64_t sample = 0;

  float forward(int step, int rank) {
    sample = static_cast<std::uint64_t>(rank) * width;
    error = step == broken_step && rank == 2 ? std::numeric_limits<float>::quiet_NaN() : 0.0f;
    for (std::size_t i = 0; i < width; ++i) error += (weights[i] - 1.0f) * random_value(sample + i);
    return error * error;
  }
  void backward(float factor) {
    for (std::size_t i = 0; i < width; ++i) {
      gradient[i] = factor * (2.0f * error * random_value(sample + i));
    }
  }
  void step() {
    for (std::size_t i = 0; i < width; ++i) weights[i] -= 1e-4f * gradient[i];
  }
};

/// Final values of a rank.
struct result {
  std::vector<float> weights;
  std::string skipped;
  double scale = 0;
  double first_norm = 0;  ///< of the gradients in the first step
  double norm = 0;        ///< of the gradients in the last step
  friend bool operator==(const result&, const result&) = default;
};

/// Returns the norm of the gradient. Each rank sums only the squares of its share; the combined sum
/// has the bits of one sum over all elements.
double gradient_norm(communicator& ranks, const std::vector<float>& gradient) {
  const std::size_t share = width / rank_count;  // whole chunks of 4096 elements
  const std::size_t begin = share * static_cast<std::size_t>(ranks.rank());
  samebits::tree_part squares(begin);
  squares.add_squares(samebits::view_of(std::span(gradient).subspan(begin, share)));
  return std::sqrt(samebits::sum_shards(ranks, {&squares, 1}).total);
}

result train(communicator& ranks, samebits::format_id communication) {
  model m;
  samebits::loss_scaler scaler;
  result r;
  for (int step = 0; step < steps; ++step) {
    const float loss = m.forward(step, ranks.rank());
    scaler.scale(loss);  // remembers a loss that is not finite
    m.backward(static_cast<float>(scaler.get_scale()));
    const matrix_view gradients[] = {samebits::view_of(m.gradient)};
    samebits::reduce_gradients(ranks, gradients,
                               {.communication = communication, .factor = 1.0f / rank_count});
    scaler.unscale(gradients);
    r.norm = gradient_norm(ranks, m.gradient);
    if (step == 0) r.first_norm = r.norm;
    // Every rank has the NaN in its gradients now. Only rank 2 knows that the NaN comes from its
    // loss, not from the scale. After agree() all ranks know.
    const auto seen = scaler.agree(ranks);
    if (!scaler.step([&] { m.step(); })) {
      r.skipped += "step " + std::to_string(step) + ", rank " + std::to_string(seen.bad_rank);
    }
    const samebits::step_decision decision = scaler.update();
    if (!decision.apply) r.skipped += ", " + std::string(samebits::name(decision.cause)) + "; ";
  }
  r.weights = m.weights;
  r.scale = scaler.get_scale();
  return r;
}

}  // namespace

int main() {
  for (const auto communication :
       {samebits::format_id::fp32, samebits::format_id::bf16, samebits::format_id::e4m3}) {
    std::vector<result> results(rank_count);
    const auto calls = samebits::testkit::simulate_ranks(rank_count, [&](communicator& ranks) {
      results[static_cast<std::size_t>(ranks.rank())] = train(ranks, communication);
    });
    bool same = true;
    for (const result& r : results) same = same && r == results[0];
    std::size_t contributions = 0;
    for (const auto& call : calls) {
      if (call.operation == samebits::testkit::rank_operation::all_to_all) {
        contributions += call.bytes;
      }
    }
    std::cout << samebits::name(communication) << ", " << contributions / steps
              << " bytes sent in a step: gradient norm from " << results[0].first_norm << " to "
              << results[0].norm << ", the same bits on all ranks: " << (same ? "yes" : "no")
              << "\n";
    std::cout << "  skipped: " << results[0].skipped << "scale 2^" << std::log2(results[0].scale)
              << "\n";
  }
}
