// Optimizer steps on memory that is passed as addresses. The Python code keeps the arrays that own the
// memory.
#include <cstdint>
#include <string>
#include <vector>

#include "c_call.hpp"

namespace samebits::python {
namespace {

template <class T>
T* at(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);
}

// Reads the fields of a row one after another.
class fields {
 public:
  explicit fields(nb::handle row) : row_(row) {}

  template <class T>
  T next() {
    return nb::cast<T>(row_[next_++]);
  }
  template <class T>
  T* pointer() {
    return at<T>(next<std::uintptr_t>());
  }
  // Three fields: codes, scales, format.
  samebits_stored_array stored() {
    samebits_stored_array a = {};
    a.codes = pointer<void>();
    a.scales = pointer<float>();
    a.format = next<std::int32_t>();
    return a;
  }

 private:
  nb::handle row_;
  std::size_t next_ = 0;
};

// A row: weights, master, first state, second state, each as (codes, scales, format); low, low_kind,
// gradient_format, count, first_index, stream, group, block.
samebits_optimizer_tensor tensor_of(nb::handle row, const char* name) {
  fields f(row);
  samebits_optimizer_tensor t = {};
  t.weights = f.stored();
  t.master = f.stored();
  t.states[0] = f.stored();
  t.states[1] = f.stored();
  t.low = f.pointer<void>();
  t.low_kind = f.next<std::int32_t>();
  t.gradient.format = f.next<std::int32_t>();
  t.count = f.next<std::int64_t>();
  t.first_index = f.next<std::uint64_t>();
  t.stream = f.next<std::uint32_t>();
  t.group = f.next<std::uint32_t>();
  t.block = f.next<std::uint32_t>();
  t.name = name;
  return t;
}

// A row: rule, profile, nesterov, learning_rate, beta1, beta2, epsilon, weight_decay, momentum,
// dampening.
samebits_optimizer_settings settings_of(nb::handle row) {
  fields f(row);
  samebits_optimizer_settings s = SAMEBITS_OPTIMIZER_SETTINGS_INIT;
  s.rule = f.next<std::int32_t>();
  s.profile = f.next<std::int32_t>();
  s.nesterov = f.next<std::int32_t>();
  s.learning_rate = f.next<double>();
  s.beta1 = f.next<double>();
  s.beta2 = f.next<double>();
  s.epsilon = f.next<double>();
  s.weight_decay = f.next<double>();
  s.momentum = f.next<double>();
  s.dampening = f.next<double>();
  return s;
}

// Owns a list of the library. The arrays may be gone; the caller compares addresses before each use.
class optimizer_list {
 public:
  optimizer_list(const std::vector<samebits_optimizer_tensor>& tensors, bool on_device) {
    const std::int32_t memory = on_device ? SAMEBITS_MEMORY_DEVICE : SAMEBITS_MEMORY_HOST;
    c::check(samebits_optimizer_list_describe(tensors.data(), tensors.size(), memory, &list_));
    std::uint64_t elements = 0;
    c::check(samebits_optimizer_list_size(list_, nullptr, &elements));
    elements_ = static_cast<std::int64_t>(elements);
  }
  ~optimizer_list() { samebits_optimizer_list_destroy(list_); }
  optimizer_list(const optimizer_list&) = delete;
  optimizer_list& operator=(const optimizer_list&) = delete;

  [[nodiscard]] std::size_t tables_size() const {
    std::size_t bytes = 0;
    c::check(samebits_optimizer_list_tables_size(list_, &bytes));
    return bytes;
  }
  void write_tables(std::uintptr_t tables, std::size_t size, std::uintptr_t on_device) {
    c::check(samebits_optimizer_list_write_tables(list_, at<void>(tables), size,
                                                  at<const void>(on_device)));
  }
  void step(nb::list groups, std::uint64_t applied_steps, double grad_mul, std::uintptr_t decision,
            std::uintptr_t learning_rates, std::uint64_t seed, nb::handle threads,
            nb::handle backend, nb::handle stream) const {
    std::vector<samebits_optimizer_settings> settings;
    settings.reserve(nb::len(groups));
    for (const nb::handle group : groups) settings.push_back(settings_of(group));
    samebits_step_input input = SAMEBITS_STEP_INPUT_INIT;
    input.applied_steps = applied_steps;
    input.grad_mul = static_cast<float>(grad_mul);
    input.decision = at<const samebits_step_report>(decision);
    input.learning_rates = at<const float>(learning_rates);
    input.seed = seed;
    const samebits_executor where = c::executor_of(threads, backend, stream, array(), elements_);
    c::run_to_end(elements_, [&] {
      return samebits_optimizer_step(list_, settings.data(), settings.size(), &input, &where);
    });
  }

 private:
  samebits_optimizer_list* list_ = nullptr;
  std::int64_t elements_ = 0;
};

// The tensors of an optimizer without their gradients.
class optimizer_tensors {
 public:
  optimizer_tensors(nb::list rows, nb::list names, bool on_device) : on_device_(on_device) {
    const std::size_t count = nb::len(rows);
    names_.reserve(count);
    tensors_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      names_.push_back(nb::cast<std::string>(nb::str(names[i])));
      tensors_.push_back(tensor_of(rows[i], names_.back().c_str()));
    }
  }
  optimizer_tensors(const optimizer_tensors&) = delete;
  optimizer_tensors& operator=(const optimizer_tensors&) = delete;

  // Returns the list with these gradients: an address for each tensor; 0: the tensor takes no part.
  [[nodiscard]] optimizer_list* with_gradients(nb::list addresses) const {
    std::vector<samebits_optimizer_tensor> tensors = tensors_;
    if (nb::len(addresses) != tensors.size()) raise_internal("one address per tensor is expected");
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto address = nb::cast<std::uintptr_t>(addresses[i]);
      tensors[i].gradient.codes = at<const void>(address);
      if (address == 0) tensors[i].count = 0;
    }
    return new optimizer_list(tensors, on_device_);
  }

 private:
  bool on_device_;
  std::vector<std::string> names_;
  std::vector<samebits_optimizer_tensor> tensors_;
};

int state_count(nb::handle settings) {
  const samebits_optimizer_settings s = settings_of(settings);
  std::int32_t count = 0;
  c::check(samebits_optimizer_state_count(&s, &count));
  return count;
}

std::uint64_t random_stream_number(int purpose, std::uint32_t tensor, std::uint64_t step) {
  std::uint64_t stream = 0;
  c::check(samebits_random_stream_number(purpose, tensor, step, &stream));
  return stream;
}

}  // namespace

void bind_optimizer(nb::module_& m) {
  using nb::arg;
  nb::class_<optimizer_list>(m, "OptimizerList", "Weights, states and gradients, by address.")
      .def("tables_size", &optimizer_list::tables_size, "Bytes of the tables; 0 on the host.")
      .def("write_tables", &optimizer_list::write_tables, arg("tables"), arg("size"),
           arg("on_device"), "Writes the tables into host memory.")
      .def("step", &optimizer_list::step, arg("groups"), arg("applied_steps"), arg("grad_mul"),
           arg("decision"), arg("learning_rates"), arg("seed"), arg("threads").none(),
           arg("backend").none(), arg("stream").none(), "Applies one step.");
  nb::class_<optimizer_tensors>(m, "OptimizerTensors", "Weights and states, by address.")
      .def(nb::init<nb::list, nb::list, bool>(), arg("rows"), arg("names"), arg("on_device"))
      .def("with_gradients", &optimizer_tensors::with_gradients, arg("addresses"),
           nb::rv_policy::take_ownership, "Returns an OptimizerList.");
  m.def("optimizer_state_count", &state_count, arg("settings"), "Number of states of a group.");
  m.def("random_stream_number", &random_stream_number, arg("purpose"), arg("tensor"), arg("step"),
        "The random stream of one purpose, tensor and step.");
}

}  // namespace samebits::python
