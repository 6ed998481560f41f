// The formulas of optimizer steps in binary64, with which `update` compares the ways to keep weights.
#include <cmath>
#include <cstddef>

#include "fpinspect/explore/update/weight_life.hpp"

namespace fpinspect {
namespace {

using samebits::optimizer_settings;
using samebits::update_rule;

struct exact_weight {
  double p;
  double m = 0;
  double v = 0;
  double direction = 0;  ///< lamb
};

/// Constants of one step.
struct step_constants {
  bool first;
  double c1;  ///< 1 - beta1^t
  double c2;  ///< 1 - beta2^t
};

/// Updates m and v; returns Adam's direction.
double adam_direction(exact_weight& w, double g, const optimizer_settings& s,
                      const step_constants& c) {
  w.m = s.beta1 * w.m + (1 - s.beta1) * g;
  w.v = s.beta2 * w.v + (1 - s.beta2) * (g * g);
  return w.m / c.c1 / (std::sqrt(w.v / c.c2) + s.epsilon);
}

void sgd_step(exact_weight& w, double g, const optimizer_settings& s, const step_constants& c) {
  g += s.weight_decay * w.p;
  if (s.momentum != 0) {
    w.m = c.first ? g : s.momentum * w.m + (1 - s.dampening) * g;
    g = s.nesterov ? g + s.momentum * w.m : w.m;
  }
  w.p -= s.learning_rate * g;
}

void lion_step(exact_weight& w, double g, const optimizer_settings& s) {
  const double x = s.beta1 * w.m + (1 - s.beta1) * g;
  const double sign = x > 0 ? 1 : x < 0 ? -1 : 0;
  w.p = w.p * (1 - s.learning_rate * s.weight_decay) - s.learning_rate * sign;
  w.m = s.beta2 * w.m + (1 - s.beta2) * g;
}

/// All rules but lamb.
void step_weight(exact_weight& w, double g, const optimizer_settings& s, const step_constants& c) {
  switch (s.rule) {
    case update_rule::sgd: return sgd_step(w, g, s, c);
    case update_rule::lion: return lion_step(w, g, s);
    case update_rule::adam: g += s.weight_decay * w.p; break;
    default: w.p *= 1 - s.learning_rate * s.weight_decay;
  }
  w.p -= s.learning_rate * adam_direction(w, g, s, c);
}

/// One step of lamb. The tensor has `equal_weights` weights like `w`, and `other`.
void lamb_step(exact_weight& w, exact_weight& other, double g, const optimizer_settings& s,
               const step_constants& c) {
  const auto direct = [&](exact_weight& x, double gradient) {
    x.direction = adam_direction(x, gradient, s, c) + s.weight_decay * x.p;
  };
  direct(w, g);
  direct(other, 0);
  const auto norm = [](double equal, double one) {
    return std::sqrt(double{equal_weights} * (equal * equal) + one * one);
  };
  const double weights = norm(w.p, other.p);
  const double directions = norm(w.direction, other.direction);
  const double trust = weights > 0 && directions > 0 ? weights / directions : 1;
  for (exact_weight* x : {&w, &other}) x->p -= s.learning_rate * trust * x->direction;
}

}  // namespace

std::vector<double> exact_life(const update_plan& plan) {
  exact_weight weight{plan.start};
  exact_weight other{plan.block_amax};
  const optimizer_settings& s = plan.settings;
  double power1 = 1;
  double power2 = 1;
  std::vector<double> shown = {weight.p};
  for (std::uint64_t t = 1; t <= plan.shown.back(); ++t) {
    power1 *= s.beta1;
    power2 *= s.beta2;
    const step_constants constants{t == 1, 1 - power1, 1 - power2};
    if (s.rule == update_rule::lamb) {
      lamb_step(weight, other, plan.gradient(t), s, constants);
    } else {
      step_weight(weight, plan.gradient(t), s, constants);
    }
    // The sign of a NaN depends on the processor.
    if (t == plan.shown[shown.size()]) shown.push_back(std::isnan(weight.p) ? NAN : weight.p);
  }
  return shown;
}

}  // namespace fpinspect
