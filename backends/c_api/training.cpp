// The loss scaler and optimizer steps through the C interface.
#include <cstring>
#include <string>
#include <vector>

#include "backends/c_api/arguments.hpp"
#include "backends/c_api/error.hpp"
#include "samebits/loss_scaler.hpp"
#include "samebits/optimizer.hpp"

struct samebits_scaler {
  samebits::loss_scaler scaler;
};

namespace samebits::c_api {
namespace {

struct optimizer_options {
  optimizer_settings settings = {};
  std::uint64_t seed = 0;
  std::uint32_t block = 128;
  std::uint32_t first_parameter = 0;
};

stored_format stored(const char* text, const std::string& which) {
  return text == nullptr ? stored_format::none : named<stored_format>(text, which + ".format");
}

stored_array stored(const samebits_stored& s, const std::string& which) {
  return {s.codes, stored(s.format, which), s.scales};
}

optimizer_tensor tensor_of(const samebits_parameter& p, const std::string& which) {
  optimizer_tensor t;
  t.weights = stored(p.weights, which + ".weights");
  t.gradient = {p.gradient.codes, stored(p.gradient.format, which + ".gradient"),
                p.gradient.scales};
  t.master = stored(p.master, which + ".master");
  t.states = {stored(p.states[0], which + ".states[0]"), stored(p.states[1], which + ".states[1]")};
  t.low = p.low;
  if (p.low_kind != nullptr) t.low_kind = named<low_part>(p.low_kind, which + ".low_kind");
  t.count = p.count;
  t.first_index = p.first_index;
  if (p.name != nullptr) t.name = p.name;
  return t;
}

}  // namespace
}  // namespace samebits::c_api

namespace api = samebits::c_api;

template <>
inline constexpr auto samebits::option_table<samebits::c_api::optimizer_options> = std::tuple_cat(
    options_in(&c_api::optimizer_options::settings, detail::update_options),
    std::tuple(option("seed", &c_api::optimizer_options::seed),
               option("block", &c_api::optimizer_options::block),
               option("first_parameter", &c_api::optimizer_options::first_parameter)));

struct samebits_optimizer {
  samebits::optimizer_list list;
  samebits::optimizer_settings settings;
  std::uint64_t seed;
};

int samebits_scaler_create(const char* policy, const char* options, samebits_scaler** scaler) {
  return api::guarded([&] {
    samebits_scaler*& out = api::required(scaler, "scaler");
    samebits::scaling_settings settings = samebits::default_settings(
        api::named<samebits::scaling_policy>(&api::required(policy, "policy"), "policy"));
    api::set_options(settings, options);
    out = new samebits_scaler{samebits::loss_scaler(settings)};
  });
}

int samebits_scaler_load(const char* text, samebits_scaler** scaler) {
  return api::guarded([&] {
    samebits_scaler*& out = api::required(scaler, "scaler");
    out = new samebits_scaler{samebits::loss_scaler::load(&api::required(text, "text"))};
  });
}

void samebits_scaler_destroy(samebits_scaler* scaler) { delete scaler; }

int samebits_scaler_scale(samebits_scaler* scaler, float loss, float* scaled) {
  return api::guarded(
      [&] { api::write(scaled, api::required(scaler, "scaler").scaler.scale(loss)); });
}

int samebits_scaler_inspect(samebits_scaler* scaler, const samebits_array* gradients, size_t count,
                            double* norm, int64_t* first_bad, const samebits_executor* where) {
  return api::guarded([&] {
    samebits::loss_scaler& s = api::required(scaler, "scaler").scaler;
    std::vector<samebits::matrix_view> views;
    for (const samebits_array& a : api::array_of(gradients, count, "gradients")) {
      views.push_back(api::view(&a, "gradients[" + std::to_string(views.size()) + "]"));
    }
    const samebits::inspect_report report =
        samebits::inspect(samebits::tensor_list(views), {}, api::where(where));
    s.observe(report.observation());
    api::write(norm, report.total.norm());
    api::write(first_bad, report.first_bad);
  });
}

int samebits_scaler_step(samebits_scaler* scaler, int32_t* apply, float* grad_mul,
                         double* next_scale) {
  return api::guarded([&] {
    samebits::loss_scaler& s = api::required(scaler, "scaler").scaler;
    const float inverse = s.inverse_scale();
    const bool applied = s.step([] {});
    s.update();
    api::write(apply, applied);
    api::write(grad_mul, applied ? inverse : 0);
    api::write(next_scale, s.get_scale());
  });
}

int samebits_scaler_save(const samebits_scaler* scaler, char* text, size_t size, size_t* length) {
  return api::guarded([&] {
    const std::string saved = api::required(scaler, "scaler").scaler.save();
    if (size != 0) {
      (void)api::required(text, "text");
      if (size <= saved.size()) {
        throw samebits::invalid_argument("size: must be 0 or at least " +
                                         std::to_string(saved.size() + 1) + ", got " +
                                         std::to_string(size));
      }
      std::memcpy(text, saved.c_str(), saved.size() + 1);
    }
    api::write(length, saved.size());
  });
}

int samebits_optimizer_create(const samebits_parameter* parameters, size_t count, int32_t on_device,
                              const char* options, samebits_optimizer** optimizer) {
  return api::guarded([&] {
    samebits_optimizer*& out = api::required(optimizer, "optimizer");
    api::optimizer_options o;
    api::set_options(o, options);
    std::vector<samebits::optimizer_tensor> tensors;
    for (const samebits_parameter& p : api::array_of(parameters, count, "parameters")) {
      const std::size_t i = tensors.size();
      tensors.push_back(api::tensor_of(p, "parameters[" + std::to_string(i) + "]"));
      tensors.back().stream = o.first_parameter + static_cast<std::uint32_t>(i);
      tensors.back().block = o.block;
    }
    out = new samebits_optimizer{
        samebits::optimizer_list(std::move(tensors), api::space(on_device, "on_device")),
        o.settings, o.seed};
  });
}

void samebits_optimizer_destroy(samebits_optimizer* optimizer) { delete optimizer; }

int samebits_optimizer_step(const samebits_optimizer* optimizer, uint64_t step, float grad_mul,
                            double learning_rate, const samebits_executor* where) {
  return api::guarded([&] {
    const samebits_optimizer& o = api::required(optimizer, "optimizer");
    samebits::optimizer_settings settings = o.settings;
    settings.learning_rate = learning_rate;
    samebits::optimizer_step(o.list, {&settings, 1},
                             {.applied_steps = step, .grad_mul = grad_mul, .seed = o.seed},
                             api::where(where));
  });
}
