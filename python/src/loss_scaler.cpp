// The host's loss scaler as a Python class.
#include "loss_scaler.hpp"

#include <exception>
#include <vector>

#include "tensor_list.hpp"

namespace samebits::python {

scaler::scaler(int policy, nb::list settings) {
  std::vector<std::string> texts;
  for (nb::handle pair : settings) {
    texts.push_back(nb::cast<std::string>(nb::str(pair[0])));
    texts.push_back(nb::cast<std::string>(nb::str(pair[1])));
  }
  std::vector<samebits_setting> each;
  for (std::size_t i = 0; i < texts.size(); i += 2) {
    each.push_back({texts[i].c_str(), texts[i + 1].c_str()});
  }
  c::check(samebits_loss_scaler_create(policy, each.data(), each.size(), &scaler_));
}

namespace {

// Numbers are Python's binary64: conversions from and to binary32 need the guard, since subnormals
// of binary32 are flushed outside. The Python number is made before the guard ends.
nb::float_ scale(scaler& s, double loss) {
  const host_guard guard;
  float scaled = 0;
  s.locked([&](samebits_loss_scaler* l) {
    return samebits_loss_scaler_scale(l, static_cast<float>(loss), &scaled);
  });
  return nb::float_(scaled);
}

nb::tuple unscale(scaler& s, nb::list arrays, nb::list names, const char* optimizer,
                  nb::handle threads, nb::handle backend, nb::handle stream) {
  const tensor_list list(arrays, names, "gradients", access::write, -1, stream_of(stream));
  const samebits_executor where =
      c::executor_of(threads, backend, stream, list.first(), list.elements());
  samebits_unscale_report report = {};
  s.locked([&](samebits_loss_scaler* l) {
    return samebits_loss_scaler_unscale(l, list.get(), optimizer, &report, &where);
  });
  return tuple_of(report);
}

void observe(scaler& s, bool nonfinite, bool loss_nonfinite, bool unscaled_nonfinite,
             std::uint32_t amax_bits, const char* optimizer) {
  samebits_step_observation seen = SAMEBITS_STEP_OBSERVATION_INIT;
  seen.nonfinite = nonfinite ? 1 : 0;
  seen.loss_nonfinite = loss_nonfinite ? 1 : 0;
  seen.unscaled_nonfinite = unscaled_nonfinite ? 1 : 0;
  seen.amax_bits = amax_bits;
  s.locked(
      [&](samebits_loss_scaler* l) { return samebits_loss_scaler_observe(l, &seen, optimizer); });
}

// The optimizer of a step, and the exception that it raised.
struct optimizer_call {
  nb::handle run;
  std::exception_ptr raised;
};

std::int32_t run_optimizer(void* user) {
  auto& call = *static_cast<optimizer_call*>(user);
  const nb::gil_scoped_acquire acquire;
  try {
    call.run();
    return 0;
  } catch (...) {  // raised again by step()
    call.raised = std::current_exception();
    return 1;
  }
}

bool step(scaler& s, nb::handle run, const char* optimizer) {
  optimizer_call call = {run, nullptr};
  std::int32_t applied = 0;
  try {
    s.locked([&](samebits_loss_scaler* l) {
      return samebits_loss_scaler_step(l, optimizer, run.is_none() ? nullptr : run_optimizer, &call,
                                       &applied);
    });
  } catch (nb::python_error&) {
    if (call.raised) std::rethrow_exception(call.raised);
    throw;
  }
  return applied != 0;
}

nb::tuple update(scaler& s) {
  samebits_step_decision d = {};
  s.locked([&](samebits_loss_scaler* l) { return samebits_loss_scaler_update(l, &d); });
  return nb::make_tuple(d.apply != 0, samebits_enum_name(SAMEBITS_ENUM_STEP_CAUSE, d.cause),
                        samebits_enum_name(SAMEBITS_ENUM_SCALE_CHANGE, d.change), d.stop != 0);
}

template <class Value>
Value get(scaler& s, std::int32_t (*call)(const samebits_loss_scaler*, Value*)) {
  Value value = {};
  s.locked([&](samebits_loss_scaler* l) { return call(l, &value); });
  return value;
}

nb::float_ inverse_scale(scaler& s) {
  const host_guard guard;
  return nb::float_(get(s, samebits_loss_scaler_inverse_scale));
}

nb::str text(scaler& s,
             std::int32_t (*call)(const samebits_loss_scaler*, char*, std::size_t, std::size_t*)) {
  std::string buffer;
  s.locked([&](samebits_loss_scaler* l) {
    std::size_t length = 0;
    const std::int32_t status = call(l, nullptr, 0, &length);
    if (status != SAMEBITS_OK) return status;
    buffer.resize(length + 1);
    return call(l, buffer.data(), buffer.size(), &length);
  });
  return nb::str(buffer.c_str());
}

void import_state(scaler& s, int from, nb::list entries) {
  std::vector<samebits_state_entry> each;
  for (nb::handle pair : entries) {
    samebits_state_entry entry = {};
    const auto key = nb::cast<std::string>(nb::str(pair[0]));
    if (key.size() >= sizeof entry.key) raise_invalid("state: no policy has the key " + key);
    key.copy(entry.key, key.size());
    entry.value = nb::cast<double>(pair[1]);
    each.push_back(entry);
  }
  s.locked([&](samebits_loss_scaler* l) {
    return samebits_loss_scaler_import_state(l, from, each.data(), each.size());
  });
}

nb::list export_state(scaler& s, int to) {
  std::vector<samebits_state_entry> each;
  s.locked([&](samebits_loss_scaler* l) {
    std::size_t count = 0;
    const std::int32_t status = samebits_loss_scaler_export_state(l, to, nullptr, 0, &count);
    if (status != SAMEBITS_OK) return status;
    each.resize(count);
    return samebits_loss_scaler_export_state(l, to, each.data(), each.size(), &count);
  });
  nb::list result;
  for (const samebits_state_entry& e : each) result.append(nb::make_tuple(e.key, e.value));
  return result;
}

}  // namespace

void bind_loss_scaler(nb::module_& m) {
  using nb::arg;
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
            s.locked([&](samebits_loss_scaler* l) {
              return samebits_loss_scaler_discard(l, optimizer);
            });
          },
          arg("optimizer"), "Forgets a failed unscale.")
      .def("observe", &observe, arg("nonfinite"), arg("loss_nonfinite"), arg("unscaled_nonfinite"),
           arg("amax_bits"), arg("optimizer"), "Records an observation.")
      .def("step", &step, arg("run").none(), arg("optimizer"), "Runs the optimizer or skips it.")
      .def("update", &update, "Returns (apply, cause, change, stop).")
      .def("policy", [](scaler& s) { return get(s, samebits_loss_scaler_policy); })
      .def("get_scale", [](scaler& s) { return get(s, samebits_loss_scaler_get_scale); })
      .def("inverse_scale", &inverse_scale)
      .def("updates", [](scaler& s) { return get(s, samebits_loss_scaler_updates); })
      .def(
          "applied_steps",
          [](scaler& s, const char* optimizer) {
            std::uint64_t steps = 0;
            s.locked([&](samebits_loss_scaler* l) {
              return samebits_loss_scaler_applied_steps(l, optimizer, &steps);
            });
            return steps;
          },
          arg("optimizer"))
      .def("save", [](scaler& s) { return text(s, samebits_loss_scaler_save); })
      .def("describe", [](scaler& s) { return text(s, samebits_loss_scaler_describe); })
      .def("import_state", &import_state, arg("policy"), arg("entries"))
      .def("export_state", &export_state, arg("policy"));
}

}  // namespace samebits::python
