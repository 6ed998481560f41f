// Scenarios of loss scalers, with all gradients on one rank and spread over ranks.
#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <stdexcept>
#include <variant>

#include "engine/cases/operations.hpp"
#include "engine/cases/scaler_cases.hpp"
#include "engine/cases/scaler_scenario.hpp"
#include "engine/core/problem.hpp"
#include "numerics/loss_scale/decide.hpp"
#include "samebits/distributed.hpp"
#include "samebits/loss_scaler.hpp"
#include "samebits/quantize.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits::support {

void draw_gradients(const scaler_scenario& c, const call_site& site, std::size_t step) {
  for (std::size_t i = 0; i < c.tensors.size(); ++i) {
    site.target.copy(site.views[i], site.views[(step + 1) * c.tensors.size() + 1 + i]);
  }
}

tensor_list shards_of(const scaler_scenario& c, const call_site& site, int rank) {
  const std::size_t tensors = c.tensors.size();
  return tensor_list(
      std::span(site.views).subspan(static_cast<std::size_t>(rank) * tensors, tensors));
}

std::vector<std::uint64_t> first_elements(const scaler_scenario& c, int rank) {
  std::vector<std::uint64_t> all;
  for (const scenario_tensor& t : c.tensors)
    all.push_back(static_cast<std::uint64_t>(t.begin(rank)));
  return all;
}

void add_report(returned_values& all, const step_report& r) {
  for (const returned_value& f :
       {returned_value{"step", r.step}, returned_value{"applied_steps", r.applied_steps},
        returned_value{"scale", std::bit_cast<std::uint64_t>(r.scale)},
        returned_value{"norm", std::bit_cast<std::uint64_t>(r.norm)},
        returned_value{"first_bad", static_cast<std::uint64_t>(r.first_bad)},
        returned_value{"bad_rank", static_cast<std::uint64_t>(r.bad_rank)},
        returned_value{"grad_mul", std::bit_cast<std::uint32_t>(r.grad_mul)},
        returned_value{"amax", r.amax_bits},
        returned_value{"exponent", static_cast<std::uint64_t>(r.exponent)},
        returned_value{"applied", r.applied ? 1u : 0u}, returned_value{"stop", r.stop ? 1u : 0u},
        returned_value{"cause", static_cast<std::uint64_t>(r.cause)},
        returned_value{"change", static_cast<std::uint64_t>(r.change)}}) {
    all.push_back(f);
  }
}

void add_outcome(returned_values& all, const step_report& last, double scale) {
  add_report(all, last);
  all.push_back({"scale afterwards", std::bit_cast<std::uint64_t>(scale)});
}

strided_buffer random_gradients(format_id format, const array_layout& layout, list_content kind,
                                std::uint64_t seed) {
  strided_buffer buffer(format, layout);
  const word_source next = words_from(seed);
  const std::int64_t elements = layout.rows * layout.cols;
  const std::int64_t odd = elements == 0 ? -1 : below(elements, next);
  for (std::int64_t i = 0; i < elements; ++i) {
    const list_content own =
        kind == list_content::any_bits && i != odd ? list_content::ordinary : kind;
    buffer.store(layout.at(i), draw_list_code(format, own, next));
  }
  return buffer;
}

namespace {

/// One in `rarity` losses is Inf or NaN.
strided_buffer random_losses(const scaler_scenario& c, std::int64_t rows, std::uint64_t rarity) {
  strided_buffer losses(format_id::fp32, dense_layout(rows, scenario_losses));
  std::mt19937_64 engine(c.content);
  for (std::int64_t i = 0; i < rows * scenario_losses; ++i) {
    const bool bad = engine() % rarity == 0;
    losses.store(i, bad ? (engine() % 2 == 0 ? 0x7F800000u : 0xFFC00001u)
                        : 0x3F000000u + engine() % 0x1000000u);
  }
  return losses;
}

bool has_nonfinite(const float* losses) {
  return !std::all_of(losses, losses + scenario_losses, [](float x) { return std::isfinite(x); });
}

buffers memory_of_scenario(const scaler_scenario& c) {
  buffers all;
  const auto add_gradients = [&](const std::string& which, buffer_use use, const auto& content_of) {
    for (std::size_t i = 0; i < c.tensors.size(); ++i) {
      all.push_back({which + " tensor " + std::to_string(i), use, content_of(c.tensors[i], i)});
    }
  };
  add_gradients("gradients", buffer_use::result, [](const scenario_tensor& t, std::size_t) {
    return strided_buffer(t.format, t.layout);
  });
  const auto steps = static_cast<std::int64_t>(c.steps.size());
  all.push_back({"losses", buffer_use::given, random_losses(c, steps, 32)});
  for (std::size_t s = 0; s < c.steps.size(); ++s) {
    add_gradients("step " + std::to_string(s), buffer_use::given,
                  [&](const scenario_tensor& t, std::size_t i) {
                    return random_gradients(t.format, t.layout, c.steps[s],
                                            c.content + 31 * s + 7 * i);
                  });
  }
  return all;
}

buffers memory_of_shards(const scaler_scenario& c) {
  buffers all;
  const bool alike = c.apart && std::isfinite(c.max_norm);
  for (int rank = 0; rank < c.ranks; ++rank) {
    for (std::size_t i = 0; i < c.tensors.size(); ++i) {
      const scenario_tensor& t = c.tensors[i];
      const std::int64_t count = c.apart ? t.borders.back() : t.end(rank) - t.begin(rank);
      const std::uint64_t seed =
          c.content + (alike ? 0 : 31 * static_cast<std::uint64_t>(rank)) + 7 * i;
      all.push_back({"rank " + std::to_string(rank) + " tensor " + std::to_string(i),
                     buffer_use::given,
                     random_gradients(t.format, dense_layout(1, count),
                                      seed % 5 == 0 ? c.steps[0] : list_content::ordinary, seed)});
    }
  }
  const auto steps = static_cast<std::int64_t>(c.steps.size());
  all.push_back({"losses", buffer_use::given, random_losses(c, steps * c.ranks, 128)});
  return all;
}

template <class Settings>
using resident_of =
    numerics::resident_scaler<decltype(initial_state(std::declval<const Settings&>()))>;

/// A scaler of the host, which must agree with the definition.
class checked_scaler {
 public:
  explicit checked_scaler(const scaling_settings& settings) : scaler_(settings) {}

  void step(const step_observation& seen, std::span<const float> losses,
            const step_report& expected, double scale_afterwards) {
    for (const float loss : losses) (void)scaler_.scale(loss);
    scaler_.observe(seen);
    const bool applied = scaler_.step([] {});
    bool stop = false;
    try {
      scaler_.update();
    } catch (const scale_exhausted&) {
      stop = true;
    }
    if (applied != expected.applied || stop != expected.stop ||
        scaler_.get_scale() != scale_afterwards) {
      throw std::logic_error("loss_scaler differs from decide()");
    }
  }

 private:
  loss_scaler scaler_;
};

returned_values scenario_on_host(const scaler_scenario& c, const call_site& site) {
  returned_values all;
  const executor where = site.target.where(c.threads);
  const tensor_list gradients = gradients_of(c, site);
  checked_scaler checked(c.settings);
  std::visit(
      [&](const auto& settings) {
        resident_of<std::remove_cvref_t<decltype(settings)>> scaler{initial_state(settings)};
        step_report last;
        for (std::size_t s = 0; s < c.steps.size(); ++s) {
          draw_gradients(c, site, s);
          const std::span<const float> losses(losses_of(c, site, s), scenario_losses);
          const inspect_report seen = inspect(gradients, {}, where);
          rank_observation observed;
          observed.seen = seen.observation();
          observed.seen.loss_nonfinite = has_nonfinite(losses.data());
          observed.first_bad = seen.first_bad;
          const step_report report =
              decide(settings, scaler, observed, {seen.total.squares, c.max_norm});
          checked.step(seen.observation(), losses, report, scale_of(scaler.policy));
          add_report(all, report);
          last = report;
          if (report.applied) scale(gradients, report.grad_mul, where);
        }
        add_outcome(all, last, scale_of(scaler.policy));
      },
      c.settings);
  return all;
}

/// What a rank of the host takes a scenario to be.
returned_values shards_on_host(const scaler_scenario& c, const call_site& site,
                               communicator& ranks) {
  returned_values all;
  const tensor_list mine = shards_of(c, site, ranks.rank());
  const std::vector<std::uint64_t> first = first_elements(c, ranks.rank());
  std::vector<tree_part> parts;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const matrix_view& v = mine[i].view;
    parts.emplace_back(v.cols == 0 ? 0 : first[i]);
    parts.back().add_squares(v);
  }
  std::visit(
      [&](const auto& settings) {
        resident_of<std::remove_cvref_t<decltype(settings)>> scaler{initial_state(settings)};
        step_report last;
        for (std::size_t s = 0; s < c.steps.size(); ++s) {
          const inspect_report seen = inspect(mine, {}, site.target.where(c.threads));
          rank_observation own = {.seen = seen.observation(), .first_bad = seen.first_bad};
          own.seen.loss_nonfinite = has_nonfinite(losses_of_rank(c, site, s, ranks.rank()));
          const rank_observation observed = agree(ranks, own);
          const double squares = c.apart ? seen.total.squares : sum_shards(ranks, parts).total;
          last = decide(settings, scaler, observed, {squares, c.max_norm});
          add_report(all, last);
        }
        if (last.applied) scale(mine, last.grad_mul, site.target.where(c.threads));
        add_outcome(all, last, scale_of(scaler.policy));
      },
      c.settings);
  return all;
}

returned_values sharded_on_host(const scaler_scenario& c, const call_site& site) {
  std::vector<returned_values> of_ranks(static_cast<std::size_t>(c.ranks));
  site.target.simulate_ranks(c.ranks, [&](communicator& ranks) {
    of_ranks[static_cast<std::size_t>(ranks.rank())] = shards_on_host(c, site, ranks);
  });
  returned_values all;
  for (const returned_values& f : of_ranks) all.insert(all.end(), f.begin(), f.end());
  return all;
}

/// The host's way, or where the memory is the device's the other one.
auto on_either(returned_values (*on_host)(const scaler_scenario&, const call_site&),
               scenario_runner on_device) {
  return
      [on_host, on_device = std::move(on_device)](const scaler_scenario& c, const call_site& site) {
        return site.on_device() ? on_device(c, site) : on_host(c, site);
      };
}

operation_of<scaler_scenario> scenarios(scenario_runner on_device) {
  return {draw_scenario, memory_of_scenario, on_either(scenario_on_host, std::move(on_device))};
}
operation_of<scaler_scenario> sharded_scenarios(scenario_runner on_device) {
  return {draw_sharded, memory_of_shards, on_either(sharded_on_host, std::move(on_device))};
}

}  // namespace

array_operation scaler_operation(scenario_runner on_device) {
  return make_operation("loss scaler", scenarios(std::move(on_device)), 512);
}

array_operation long_scaler_operation(scenario_runner on_device) {
  return listed_operation("loss scaler", scenarios(std::move(on_device)), long_scenarios(400));
}

array_operation sharded_scaler_operation(scenario_runner on_device) {
  return make_operation("sharded loss scaler", sharded_scenarios(std::move(on_device)), 256);
}

array_operation large_shards_operation(scenario_runner on_device) {
  return listed_operation("sharded loss scaler", sharded_scenarios(std::move(on_device)),
                          large_shards(), 1);
}

}  // namespace samebits::support
