// Random scenarios of loss scalers, and their fields.
#include "engine/cases/scaler_cases.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <variant>

namespace samebits::support {
namespace {

/// A power of two, or a number with a full significand above it.
double number(int minimum, int maximum, const word_source& next) {
  const int exponent = minimum + static_cast<int>(below(maximum - minimum + 1, next));
  const double fraction = below(2, next) == 0 ? 0.0 : static_cast<double>(next() >> 12) * 0x1p-52;
  return std::ldexp(1.0 + fraction, exponent);
}

/// Any policy, with windows so short that the scale changes within a scenario.
scaling_settings draw_settings(const word_source& next) {
  const auto few = [&] { return static_cast<std::uint32_t>(1 + below(3, next)); };
  const double init = number(0, 19, next), least = number(-4, 0, next);
  const double growth = 1.0 + number(-2, 2, next), backoff = number(-4, -1, next);
  switch (below(enum_count<scaling_policy>, next)) {
    case 0:
      return native_scaling{.init_exponent = static_cast<std::int32_t>(below(24, next)),
                            .growth_interval = few(),
                            .recovery_interval = few(),
                            .proof = few(),
                            .probe_window = few(),
                            .hysteresis = few(),
                            .forgive_after = few(),
                            .isolated_cost = few(),
                            .headroom_window = few()};
    case 1:
      return torch_scaling{.init_scale = init,
                           .growth_factor = growth,
                           .backoff_factor = backoff,
                           .growth_interval = few()};
    case 2:
      return apex_scaling{.init_scale = init,
                          .growth_factor = growth,
                          .backoff_factor = backoff,
                          .growth_interval = few(),
                          .hysteresis = few()};
    case 3:
      return apex_amp_scaling{.init_scale = init, .scale_window = few(), .min_loss_scale = least};
    case 4:
      return megatron_scaling{.initial_scale = init,
                              .min_scale = std::min(least, init),
                              .growth_factor = growth,
                              .backoff_factor = backoff,
                              .growth_interval = few(),
                              .hysteresis = few()};
    default:
      return deepspeed_scaling{.init_scale = init,
                               .scale_factor = growth,
                               .scale_window = few(),
                               .min_scale = least,
                               .delayed_shift = few(),
                               .consecutive_hysteresis = below(2, next) == 0,
                               .raise_error_at_min_scale = below(2, next) == 0};
  }
}

scaler_scenario draw_common(std::int64_t max_steps, const word_source& next) {
  scaler_scenario c;
  c.settings = draw_settings(next);
  const int near = static_cast<int>(below(40, next)) - 30;
  c.max_norm = below(4, next) == 0
                   ? std::numeric_limits<double>::infinity()
                   : std::ldexp(1.0 + static_cast<double>(next() >> 40) * 0x1p-24, near);
  c.steps.resize(static_cast<std::size_t>(1 + below(max_steps, next)));
  for (list_content& kind : c.steps) {
    kind = below(4, next) == 0 ? list_content::any_bits : static_cast<list_content>(below(2, next));
  }
  return c;
}

constexpr std::int64_t chunk = 4096;
constexpr format_id gradient_formats[] = {format_id::fp16, format_id::fp32, format_id::bf16};

void set_cols(scenario_tensor& t, std::int64_t cols) {
  t.layout = dense_layout(1, cols);
  for (std::int64_t& b : t.borders) b = std::min(b, cols / chunk * chunk);
  t.borders.back() = cols;
}

}  // namespace

scenario_tensor cut_tensor(format_id format, std::int64_t cols, int ranks,
                           const word_source& next) {
  scenario_tensor t{format, dense_layout(1, cols), {0, cols}};
  for (int i = 1; i < ranks; ++i) t.borders.push_back(below(cols / chunk + 1, next) * chunk);
  std::sort(t.borders.begin(), t.borders.end());
  return t;
}

scaler_scenario draw_scenario(const word_source& next) {
  scaler_scenario c = draw_common(6, next);
  c.tensors.resize(static_cast<std::size_t>(1 + below(4, next)));
  const bool plain = below(2, next) == 0;
  for (scenario_tensor& t : c.tensors) {
    t.format = gradient_formats[below(3, next)];
    const std::int64_t rows = below(4, next);
    const std::int64_t cols = below(32, next) == 0 ? 4000 + below(300, next) : below(60, next);
    t.layout =
        plain ? dense_layout(rows, cols) : draw_layout(rows, cols, array_side::written, next);
  }
  return c;
}

scaler_scenario draw_sharded(const word_source& next) {
  constexpr int rank_counts[] = {1, 2, 3, 8};
  scaler_scenario c = draw_common(3, next);
  c.ranks = rank_counts[below(4, next)];
  c.tensors.resize(static_cast<std::size_t>(1 + below(4, next)));
  for (scenario_tensor& t : c.tensors) {
    const format_id format = gradient_formats[below(3, next)];
    const int turn = static_cast<int>(below(c.ranks, next));
    const std::int64_t chunks = below(4, next) != 0 ? below(3, next) : below(7, next);
    const std::int64_t cols = chunks * chunk + (below(2, next) == 0 ? 0 : below(60, next));
    t = cut_tensor(format, cols, c.ranks, next);
    t.turn = turn;
  }
  c.apart = below(4, next) == 0;
  return c;
}

std::vector<scaler_scenario> long_scenarios(std::size_t steps) {
  const scaling_settings policies[] = {
      native_scaling{.growth_interval = 20, .recovery_interval = 5},
      torch_scaling{.growth_interval = 10},
      apex_scaling{},
      apex_amp_scaling{},
      megatron_scaling{},
      deepspeed_scaling{}};
  std::vector<scaler_scenario> all;
  for (const scaling_settings& settings : policies) {
    scaler_scenario c{.settings = settings, .max_norm = 0x1p-16};
    c.tensors.resize(3);
    c.tensors[0].layout = dense_layout(1, 500);
    c.tensors[1].layout = dense_layout(0, 0);
    c.tensors[2] = {.format = format_id::fp32, .layout = dense_layout(3, 8)};
    for (std::size_t s = 0; s < steps; ++s) {
      c.steps.push_back(s % 3 == 0 ? list_content::any_bits : static_cast<list_content>(s % 2));
    }
    c.content = all.size();
    all.push_back(c);
  }
  return all;
}

std::vector<scaler_scenario> large_shards() {
  const word_source next = words_from(13);
  std::vector<scaler_scenario> all;
  const auto begin = [&](int ranks, std::size_t steps, list_content kind) {
    scaler_scenario c{.max_norm = 0x1p-12, .ranks = ranks};
    c.steps.assign(steps, kind);
    c.content = all.size();
    all.push_back(c);
  };
  const auto add = [&](std::vector<std::int64_t> borders, int turn) {
    std::vector<scenario_tensor>& tensors = all.back().tensors;
    const array_layout layout = dense_layout(1, borders.back());
    tensors.push_back({gradient_formats[tensors.size() % 3], layout, std::move(borders), turn});
  };
  for (const int ranks : {1, 3, 8}) {
    // One step: the host draws 14 million elements for the longest tensors, and judges them.
    begin(ranks, 1, list_content::ordinary);
    const std::int64_t longest = ranks == 3 ? 2 * 1024 + 300 : 1024 + 1;
    for (const std::int64_t cols : {longest * chunk + 5, std::int64_t{77}, 33 * chunk}) {
      std::vector<std::int64_t> borders = cut_tensor({}, cols, ranks, next).borders;
      if (ranks == 8) borders[1] = 0;  // a rank without elements of it
      add(borders, static_cast<int>(below(ranks, next)));
    }
  }
  for (const list_content kind : {list_content::ordinary, list_content::any_bits}) {
    begin(3, 2, kind);
    for (int i = 0; i < 3000; ++i)
      add({0, 0, 0, below(70, next)}, static_cast<int>(below(3, next)));
  }
  begin(3, 3, list_content::ordinary);
  add({0, 0, 5 * chunk + 1, 5 * chunk + 1}, 0);
  add({0, 0, 9, 9}, 0);
  begin(2, 1, list_content::ordinary);
  add({0, 0, 0}, 0);
  return all;
}

void describe(scaler_scenario& c, case_fields& fields) {
  fields.fewer(c.tensors, 1);
  fields.fewer(c.steps, 1);
  fields.show("steps of kinds", c.steps, "ranks", c.ranks);
  if (fields.change(c.ranks > 1)) {
    --c.ranks;
    for (scenario_tensor& t : c.tensors) {
      t.borders.erase(t.borders.end() - 2);
      t.turn %= c.ranks;
    }
  }
  for (scenario_tensor& t : c.tensors) {
    fields.line();
    fields.show("format", t.format, "layout", t.layout, "borders", t.borders, "turn", t.turn);
    const std::int64_t rows = t.layout.rows, cols = t.layout.cols;
    const bool whole = t.borders.empty();
    fields.sizes(whole ? rows : 0, cols, [&](std::int64_t fewer_rows, std::int64_t fewer_cols) {
      if (!whole) return set_cols(t, fewer_cols);
      t.layout.resize(fewer_rows, fewer_cols);
    });
    if (fields.change(t.layout != dense_layout(rows, cols))) t.layout = dense_layout(rows, cols);
  }
  fields.line();
  fields.reset("apart", c.apart, false, "max_norm", c.max_norm,
               std::numeric_limits<double>::infinity());
  if (fields.change(!std::holds_alternative<torch_scaling>(c.settings)))
    c.settings = torch_scaling{};
  fields.show("settings", loss_scaler(c.settings).save());
}

}  // namespace samebits::support
