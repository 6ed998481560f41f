// The host's loss scaler as a Python class.
#include "loss_scaler.hpp"

#include <string>
#include <utility>
#include <vector>

#include "tensor_list.hpp"

namespace samebits::python {

scaler::scaler(nb::handle policy, nb::list settings) {
  const auto rule = enumerator_of<scaling_policy>(policy, "policy");
  std::vector<std::pair<std::string, std::string>> each;
  for (nb::handle pair : settings) {
    each.emplace_back(nb::cast<std::string>(nb::str(pair[0])),
                      nb::cast<std::string>(nb::str(pair[1])));
  }
  run_to_end(0, [&] {
    scaling_settings all = default_settings(rule);
    for (const auto& [name, value] : each) set_option(all, name, value);
    scaler_ = loss_scaler(all);
  });
}

scaler::scaler(const char* text) {
  run_to_end(0, [&] { scaler_ = loss_scaler::load(text); },
             {{"loss_scaler::load", "LossScaler.load"}});
}

std::string name_of(nb::handle optimizer) {
  if (optimizer.is_none()) raise_type("optimizer: a string is expected; got a NoneType");
  return std::string(text_of(optimizer, "optimizer"));
}

namespace {

// Numbers are Python's binary64: conversions from and to binary32 need the guard, since subnormals
// of binary32 are flushed outside. The Python number is made before the guard ends.
nb::float_ scale(scaler& s, nb::handle loss) {
  const double given = number_of(loss, "loss");
  const host_guard guard;
  return nb::float_(s.locked([&](loss_scaler& l) { return l.scale(static_cast<float>(given)); }));
}

nb::tuple unscale(scaler& s, nb::list arrays, nb::list names, nb::handle optimizer,
                  nb::handle where) {
  const std::string name = name_of(optimizer);  // refused before the gradients
  const listed_arrays list(arrays, names, "gradients", access::write, nb::none(), where);
  return tuple_of(s.locked([&](loss_scaler& l) { return l.unscale(list.get(), name, list.on()); }),
                  names);
}

void observe(scaler& s, nb::handle nonfinite, nb::handle loss_nonfinite,
             nb::handle unscaled_nonfinite, nb::handle amax_bits, nb::handle optimizer) {
  const step_observation seen = {flag_of(nonfinite, "nonfinite"),
                                 flag_of(loss_nonfinite, "loss_nonfinite"),
                                 flag_of(unscaled_nonfinite, "unscaled_nonfinite"),
                                 integer_of<std::uint32_t>(amax_bits, "amax_bits")};
  s.locked_for(optimizer, [&](auto& l, const auto& name) { l.observe(seen, name); });
}

bool step(scaler& s, nb::handle run, nb::handle optimizer) {
  if (!run.is_none() && PyCallable_Check(run.ptr()) == 0) {
    raise_type("run: a function is expected");
  }
  const auto call = [&] {
    if (run.is_none()) return;
    const nb::gil_scoped_acquire acquire;
    run();
  };
  return s.locked_for(optimizer, [&](auto& l, const auto& name) { return l.step(call, name); });
}

nb::tuple update(scaler& s) {
  const step_decision d = s.locked([](loss_scaler& l) { return l.update(); });
  return nb::make_tuple(d.apply, name(d.cause), name(d.change), d.stop);
}

nb::float_ inverse_scale(scaler& s) {
  const host_guard guard;
  return nb::float_(s.locked([](loss_scaler& l) { return l.inverse_scale(); }));
}

void import_state(scaler& s, nb::handle policy, nb::list entries) {
  const auto from = enumerator_of<scaling_policy>(policy, "policy");
  std::vector<state_entry> each;
  for (nb::handle pair : entries) {
    auto key = nb::cast<std::string>(nb::str(pair[0]));
    const std::string label = "state['" + key + "']";
    each.push_back({std::move(key), number_of(pair[1], label.c_str())});
  }
  s.locked([&](loss_scaler& l) { l.import_state(from, each); },
           {{"loss_scaler::import_state", "load_state_dict"}});
}

nb::list export_state(scaler& s, nb::handle policy) {
  const auto to = enumerator_of<scaling_policy>(policy, "policy");
  const auto each = s.locked([&](loss_scaler& l) { return l.export_state(to); },
                             {{"loss_scaler::export_state", "state_dict"}});
  return list_of(each, [](const state_entry& e) { return nb::make_tuple(e.key, e.value); });
}

}  // namespace

void bind_loss_scaler(nb::module_& m) {
  using nb::arg;
  const auto get = [](auto call) { return [call](scaler& s) { return s.locked(call); }; };
  nb::class_<scaler>(m, "LossScaler", "The library's loss scaler; samebits.LossScaler wraps it.")
      .def(nb::init<nb::handle, nb::list>(), arg("policy").none(), arg("settings"))
      .def(nb::init<const char*>(), arg("text"))
      .def("scale", &scale, arg("loss").none(), "Returns loss * scale in binary32.")
      .def("unscale", &unscale, arg("gradients"), arg("names"), arg("optimizer").none(),
           arg("where"), "Unscales in place; returns the fields of samebits.UnscaleReport.")
      .def(
          "discard",
          [](scaler& s, nb::handle optimizer) {
            s.locked_for(optimizer, [](auto& l, const auto& name) { l.discard(name); });
          },
          arg("optimizer").none(), "Forgets a failed unscale.")
      .def("observe", &observe, arg("nonfinite").none(), arg("loss_nonfinite").none(),
           arg("unscaled_nonfinite").none(), arg("amax_bits").none(), arg("optimizer").none(),
           "Records an observation.")
      .def("step", &step, arg("run").none(), arg("optimizer").none(),
           "Runs the optimizer or skips it.")
      .def("update", &update, "Returns (apply, cause, change, stop).")
      .def("policy", get([](loss_scaler& l) { return name(policy_of(l.settings())); }))
      .def("get_scale", get([](loss_scaler& l) { return l.get_scale(); }))
      .def("inverse_scale", &inverse_scale)
      .def("updates", get([](loss_scaler& l) { return l.updates(); }))
      .def(
          "applied_steps",
          [](scaler& s, nb::handle optimizer) {
            return s.locked_for(optimizer,
                                [](auto& l, const auto& name) { return l.applied_steps(name); });
          },
          arg("optimizer").none())
      .def("save", get([](loss_scaler& l) { return l.save(); }))
      .def("import_state", &import_state, arg("policy").none(), arg("entries"))
      .def("export_state", &export_state, arg("policy").none());
}

}  // namespace samebits::python
