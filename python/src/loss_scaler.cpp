// The host's loss scaler as a Python class.
#include "loss_scaler.hpp"

#include <nanobind/stl/string_view.h>

#include <string>
#include <utility>
#include <vector>

#include "tensor_list.hpp"

namespace samebits::python {

scaler::scaler(int policy, nb::list settings) {
  std::vector<std::pair<std::string, std::string>> each;
  for (nb::handle pair : settings) {
    each.emplace_back(nb::cast<std::string>(nb::str(pair[0])),
                      nb::cast<std::string>(nb::str(pair[1])));
  }
  run_to_end(0, [&] {
    scaling_settings all = default_settings(static_cast<scaling_policy>(policy));
    for (const auto& [name, value] : each) set_option(all, name, value);
    scaler_ = loss_scaler(all);
  });
}

scaler::scaler(const char* text) {
  run_to_end(0, [&] { scaler_ = loss_scaler::load(text); },
             {{"loss_scaler::load", "LossScaler.load"}});
}

namespace {

// Numbers are Python's binary64: conversions from and to binary32 need the guard, since subnormals
// of binary32 are flushed outside. The Python number is made before the guard ends.
nb::float_ scale(scaler& s, double loss) {
  const host_guard guard;
  return nb::float_(s.locked([&](loss_scaler& l) { return l.scale(static_cast<float>(loss)); }));
}

nb::tuple unscale(scaler& s, nb::list arrays, nb::list names, const char* optimizer,
                  nb::handle threads, nb::handle backend, nb::handle stream) {
  const listed_arrays list(arrays, names, "gradients", access::write, -1, stream_of(stream));
  const executor where = list.on(threads, backend, stream);
  return tuple_of(
      s.locked([&](loss_scaler& l) { return l.unscale(list.get(), optimizer, where); }));
}

void observe(scaler& s, bool nonfinite, bool loss_nonfinite, bool unscaled_nonfinite,
             std::uint32_t amax_bits, const char* optimizer) {
  s.locked([&](loss_scaler& l) {
    l.observe({nonfinite, loss_nonfinite, unscaled_nonfinite, amax_bits}, optimizer);
  });
}

bool step(scaler& s, nb::handle run, const char* optimizer) {
  return s.locked([&](loss_scaler& l) {
    const auto call = [&] {
      if (run.is_none()) return;
      const nb::gil_scoped_acquire acquire;
      run();
    };
    return l.step(call, optimizer);
  });
}

nb::tuple update(scaler& s) {
  const step_decision d = s.locked([](loss_scaler& l) { return l.update(); });
  return nb::make_tuple(d.apply, name(d.cause), name(d.change), d.stop);
}

nb::float_ inverse_scale(scaler& s) {
  const host_guard guard;
  return nb::float_(s.locked([](loss_scaler& l) { return l.inverse_scale(); }));
}

void import_state(scaler& s, int from, nb::list entries) {
  std::vector<state_entry> each;
  for (nb::handle pair : entries) {
    each.push_back({nb::cast<std::string>(nb::str(pair[0])), nb::cast<double>(pair[1])});
  }
  s.locked([&](loss_scaler& l) { l.import_state(static_cast<scaling_policy>(from), each); },
           {{"loss_scaler::import_state", "load_state_dict"}});
}

nb::list export_state(scaler& s, int to) {
  const auto each =
      s.locked([&](loss_scaler& l) { return l.export_state(static_cast<scaling_policy>(to)); },
               {{"loss_scaler::export_state", "state_dict"}});
  nb::list result;
  for (const state_entry& e : each) result.append(nb::make_tuple(e.key, e.value));
  return result;
}

}  // namespace

void bind_loss_scaler(nb::module_& m) {
  using nb::arg;
  const auto get = [](auto call) { return [call](scaler& s) { return s.locked(call); }; };
  nb::class_<scaler>(m, "LossScaler", "The library's loss scaler; samebits.LossScaler wraps it.")
      .def(nb::init<int, nb::list>(), arg("policy"), arg("settings"))
      .def(nb::init<const char*>(), arg("text"))
      .def("scale", &scale, arg("loss"), "Returns loss * scale in binary32.")
      .def("unscale", &unscale, arg("gradients"), arg("names"), arg("optimizer"),
           arg("threads").none(), arg("backend").none(), arg("stream").none(),
           "Unscales in place; returns the fields of samebits.UnscaleReport.")
      .def(
          "discard",
          [](scaler& s, const char* optimizer) {
            s.locked([&](loss_scaler& l) { l.discard(optimizer); });
          },
          arg("optimizer"), "Forgets a failed unscale.")
      .def("observe", &observe, arg("nonfinite"), arg("loss_nonfinite"), arg("unscaled_nonfinite"),
           arg("amax_bits"), arg("optimizer"), "Records an observation.")
      .def("step", &step, arg("run").none(), arg("optimizer"), "Runs the optimizer or skips it.")
      .def("update", &update, "Returns (apply, cause, change, stop).")
      .def("policy", get([](loss_scaler& l) { return static_cast<int>(policy_of(l.settings())); }))
      .def("get_scale", get([](loss_scaler& l) { return l.get_scale(); }))
      .def("inverse_scale", &inverse_scale)
      .def("updates", get([](loss_scaler& l) { return l.updates(); }))
      .def(
          "applied_steps",
          [](scaler& s, const char* optimizer) {
            return s.locked([&](loss_scaler& l) { return l.applied_steps(optimizer); });
          },
          arg("optimizer"))
      .def("save", get([](loss_scaler& l) { return l.save(); }))
      .def("import_state", &import_state, arg("policy"), arg("entries"))
      .def("export_state", &export_state, arg("policy"));
}

}  // namespace samebits::python
