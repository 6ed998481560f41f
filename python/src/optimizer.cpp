// Optimizer steps on memory that is passed as addresses. The Python code keeps the arrays that own the
// memory.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/dispatch/access.hpp"
#include "backends/dispatch/calls/optimizer.hpp"
#include "call.hpp"
#include "samebits/optimizer.hpp"

namespace samebits::python {
namespace {

// Where samebits.torch writes fields.
static_assert(sizeof(step_report) == 64 && offsetof(step_report, applied_steps) == 8 &&
              offsetof(step_report, grad_mul) == 48 && offsetof(step_report, applied) == 60);

// An array of an optimizer: (address of the codes, address of the scales, stored format), or None.
stored_array array_in(nb::handle part) {
  if (part.is_none()) return {};
  return {at<void>(nb::cast<std::uintptr_t>(item(part, 0))),
          enumerator_of<stored_format>(item(part, 2), "stored format"),
          at<float>(nb::cast<std::uintptr_t>(item(part, 1)))};
}

// A row: weights, master, first state, second state; address and kind of the low part; format of the
// gradient; count, first_index, stream, group, block.
optimizer_tensor tensor_of(nb::handle row, std::string name) {
  const auto number = [&]<class T>(int i, T& to) { to = nb::cast<T>(item(row, i)); };
  optimizer_tensor t;
  t.weights = array_in(item(row, 0));
  t.master = array_in(item(row, 1));
  t.states[0] = array_in(item(row, 2));
  t.states[1] = array_in(item(row, 3));
  t.low = at<void>(nb::cast<std::uintptr_t>(item(row, 4)));
  t.low_kind = enumerator_of<low_part>(item(row, 5), "low part");
  t.gradient.format = enumerator_of<stored_format>(item(row, 6), "gradient format");
  number(7, t.count);
  number(8, t.first_index);
  number(9, t.stream);
  number(10, t.group);
  number(11, t.block);
  t.name = std::move(name);
  return t;
}

// Names of the members of optimizer_settings in Python.
constexpr std::initializer_list<argument_name> names_of_settings = {
    {"learning_rate", "lr"}, {"beta1", "betas[0]"}, {"beta2", "betas[1]"}};

// Returns the checked settings of a group of parameters.
//
// @param row  (rule, learning rate, options of the group); options that the group lacks keep their
//   defaults
optimizer_settings settings_of(nb::handle row) {
  const nb::handle group = item(row, 2);
  auto s = options_by<optimizer_settings>([&](int, std::string_view name) -> nb::handle {
    if (name == "rule") return item(row, 0);
    if (name == "lr") return item(row, 1);
    return PyDict_GetItemString(group.ptr(), name.data());
  });
  if (const nb::handle betas = PyDict_GetItemString(group.ptr(), "betas"); betas.is_valid()) {
    const bool two = !PyUnicode_Check(betas.ptr()) && !PyBytes_Check(betas.ptr()) &&
                     !PyDict_Check(betas.ptr()) && PyObject_Size(betas.ptr()) == 2;
    PyErr_Clear();  // of an object without a size
    if (!two) {
      raise_type("betas: two numbers are expected; got " + std::string(nb::repr(betas).c_str()));
    }
    s.beta1 = number_of(nb::object(betas[nb::int_(0)]), "betas[0]");
    s.beta2 = number_of(nb::object(betas[nb::int_(1)]), "betas[1]");
  }
  run_to_end(
      0, [&] { check(s); }, names_of_settings);
  return s;
}

// Refuses settings of an optimizer that no step could take. Returns the number of states of a
// parameter.
int check_settings(nb::handle settings, nb::handle block, nb::handle seed) {
  const auto elements = integer_of<std::int64_t>(block, "block");
  if (elements != 128 && elements != 256) {
    raise_invalid("block: 128 or 256 is expected; got " + std::to_string(elements));
  }
  integer_of<std::uint64_t>(seed, "seed");
  return state_count(settings_of(settings));
}

// A list of the library, whose tables Python copies to the device, so that a framework's allocator owns
// all device memory and no call waits. The arrays may be gone; the caller compares addresses before each
// use. All arrays lie on the device of the first one; no call checks that.
class optimizer_step_list {
 public:
  explicit optimizer_step_list(std::shared_ptr<backends::optimizer_data> data)
      : data_(std::move(data)),
        list_(backends::access::make<optimizer_list>(
            std::shared_ptr<const backends::optimizer_data>(data_))) {}

  [[nodiscard]] std::size_t tables_size() const { return data_->tables_bytes(); }
  void write_tables(std::uintptr_t tables, std::size_t size, std::uintptr_t on_device) {
    if (size != tables_size() || on_device % 16 != 0) raise_internal("tables: wrong memory");
    data_->write_tables(at<std::byte>(tables));
    data_->on_device = {at<const std::byte>(on_device),
                        [](const std::byte*) {}};  // Python's memory
  }
  void step(nb::list groups, std::uint64_t applied_steps, double grad_mul, std::uintptr_t decision,
            std::uintptr_t learning_rates, nb::handle seed, nb::handle where) const {
    if (tables_size() != 0 && data_->on_device == nullptr) {
      raise_internal("the list has no tables");
    }
    std::vector<optimizer_settings> settings;
    settings.reserve(nb::len(groups));
    for (const nb::handle group : groups) settings.push_back(settings_of(group));
    const auto elements = static_cast<std::int64_t>(list_.elements());
    const step_input input = {.applied_steps = applied_steps,
                              .grad_mul = static_cast<float>(grad_mul),
                              .decision = at<const step_report>(decision),
                              .learning_rates = at<const float>(learning_rates),
                              .seed = integer_of<std::uint64_t>(seed, "seed")};
    const executor on = executor_of(where, array(), elements);
    run_to_end(elements, [&] { optimizer_step(list_, settings, input, on); });
  }

 private:
  std::shared_ptr<backends::optimizer_data> data_;
  optimizer_list list_;
};

// The tensors of an optimizer without their gradients.
class optimizer_tensors {
 public:
  optimizer_tensors(nb::list rows, nb::list names, bool on_device) {
    std::vector<optimizer_tensor> tensors;
    tensors.reserve(nb::len(rows));
    for (std::size_t i = 0; i < nb::len(rows); ++i) {
      tensors.push_back(tensor_of(rows[i], nb::cast<std::string>(nb::str(names[i]))));
    }
    const auto space = on_device ? memory_space::device : memory_space::host;
    run_to_end(0,
               [&] { parts_ = backends::describe_without_gradients(std::move(tensors), space); });
  }
  optimizer_tensors(const optimizer_tensors&) = delete;
  optimizer_tensors& operator=(const optimizer_tensors&) = delete;

  // Returns the list with these gradients, whose addresses are 64-bit integers; 0: the tensor takes no
  // part.
  [[nodiscard]] optimizer_step_list* with_gradients(nb::bytes addresses) const {
    std::vector<const void*> each(parts_.data->tensors.size());
    if (addresses.size() != each.size() * sizeof each[0]) {
      raise_internal("one address per tensor is expected");
    }
    if (!each.empty()) std::memcpy(each.data(), addresses.data(), addresses.size());
    std::shared_ptr<backends::optimizer_data> list;
    run_to_end(0, [&] { list = backends::with_gradients(parts_, each); });
    return new optimizer_step_list(std::move(list));
  }

 private:
  backends::optimizer_parts parts_;
};

// The name of the format of the codes of a stored format; "uint8" for dynamic codes, which have none.
std::string_view codes_name(stored_format stored) {
  const std::string_view name = samebits::name(stored);
  return is_dynamic(stored) ? "uint8" : name.substr(0, name.find('_'));
}

// Returns the format of the codes of each stored format, and whether it has block scales.
nb::dict stored_formats() {
  nb::dict formats;
  for (const auto& row : table_of<stored_format>) {
    if (row.value == stored_format::none) continue;
    formats[nb::cast(row.name)] =
        nb::make_tuple(codes_name(row.value), has_block_scales(row.value));
  }
  return formats;
}

// Returns the settings that a rule reads, with their defaults, by the names of Python's arguments.
nb::dict defaults_of(update_rule rule) {
  const optimizer_settings s = default_settings(rule);
  nb::dict d;
  d["lr"] = s.learning_rate;
  if (rule == update_rule::sgd) {
    d["momentum"] = s.momentum;
    d["dampening"] = s.dampening;
  } else {
    d["betas"] = nb::make_tuple(s.beta1, s.beta2);
    if (state_count(s) == 2) d["eps"] = s.eps;
  }
  d["weight_decay"] = s.weight_decay;
  if (rule == update_rule::sgd) d["nesterov"] = s.nesterov;
  return d;
}

// Returns (what a step computes, defaults_of()) of each rule by its name.
nb::dict update_rules() {
  nb::dict rules;
  for (const auto& row : table_of<update_rule>) {
    rules[nb::cast(row.name)] = nb::make_tuple(row.doc, defaults_of(row.value));
  }
  return rules;
}

std::uint64_t stream_number(nb::handle purpose, nb::handle tensor, nb::handle step) {
  constexpr std::uint32_t last = (1U << stream_tensor_bits) - 1;
  return random_stream_number(enumerator_of<stream_purpose>(purpose, "purpose"),
                              integer_of<std::uint32_t>(tensor, "tensor", 0, last),
                              integer_of<std::uint64_t>(step, "step"));
}

// Stores values as codes with block scales, or loads the values. All arrays are without gaps; blocks
// follow the order of memory, which is the same for values and codes.
void store_or_load(bool stores, nb::handle values, nb::handle codes, nb::handle scales,
                   nb::handle stored, std::uint32_t block) {
  const auto kind = enumerator_of<stored_format>(stored, "stored");
  const array v = array_of(values, {.name = "values"});
  // Dynamic codes are described as E8M0 codes, which are also one byte.
  const auto format = find_format(codes_name(kind)).value_or(format_id::e8m0);
  const array c = array_of(codes, {.name = "codes", .format = format});
  const array s = array_of(scales, {.name = "scales", .format = format_id::fp32});
  matrix_view view = view_of_codes(v.format, v.data, 1, v.size());
  view.space = v.memory;
  const stored_array held = {c.data, kind, reinterpret_cast<float*>(s.data)};
  const executor where = executor_of(nb::none(), nb::none(), nb::none(), v, v.size());
  run(v.size(), [&] {
    if (stores) return store(view, held, {.block = block}, where);
    load(held, view, {.block = block}, where);
  });
}

}  // namespace

void bind_optimizer(nb::module_& m) {
  using nb::arg;
  nb::class_<optimizer_step_list>(m, "OptimizerList", "Weights, states and gradients, by address.")
      .def("tables_size", &optimizer_step_list::tables_size, "Bytes of the tables; 0 on the host.")
      .def("write_tables", &optimizer_step_list::write_tables, arg("tables"), arg("size"),
           arg("on_device"), "Writes the tables into host memory.")
      .def("step", &optimizer_step_list::step, arg("groups"), arg("applied_steps"), arg("grad_mul"),
           arg("decision"), arg("learning_rates"), arg("seed").none(), arg("where"),
           "Applies one step.");
  nb::class_<optimizer_tensors>(m, "OptimizerTensors", "Weights and states, by address.")
      .def(nb::init<nb::list, nb::list, bool>(), arg("rows"), arg("names"), arg("on_device"))
      .def("with_gradients", &optimizer_tensors::with_gradients, arg("addresses"),
           nb::rv_policy::take_ownership,
           "Returns an OptimizerList; addresses are 64-bit integers.");
  def(m, "store_or_load", &store_or_load,
      "Stores values in an array of an optimizer, or loads them.");
  m.def("update_rules", &update_rules,
        "Returns what a step computes, and the defaults of the settings, of each rule.");
  m.def("stored_formats", &stored_formats,
        "Returns (format of the codes, whether there are block scales) of each stored format.");
  def(m, "check_optimizer", &check_settings,
      "Refuses settings that no step could take; returns the number of states of a parameter.");
  def(m, "random_stream_number", &stream_number,
      "The random stream of one purpose, tensor and step.");
}

}  // namespace samebits::python
