// The module samebits._core.
#include "call.hpp"
#include "samebits/core/config.hpp"

NB_MODULE(_core, m) {
  namespace python = samebits::python;
  // A hook on a torch Parameter that holds the Parameter's optimizer keeps both for ever: Python's
  // garbage collector does not see torch's own references to hooks. Objects of this module in such
  // an optimizer are alive at exit, and nanobind would report them as leaks of this module.
  nanobind::set_leak_warnings(false);
  m.doc() = "Core of samebits: functions that samebits/*.py calls. Not for users.";
  m.attr("version") = SAMEBITS_VERSION;
#if defined(SAMEBITS_PYTHON_WITH_CUDA)
  m.attr("has_cuda") = true;
#else
  m.attr("has_cuda") = false;
#endif
  python::bind_arguments(m);
  python::bind_arrays(m);
  python::bind_calls(m);
  python::bind_formats(m);
  python::bind_convert(m);
  python::bind_arithmetic(m);
  python::bind_functions(m);
  python::bind_reductions(m);
  python::bind_quantize(m);
  python::bind_tensor_list(m);
  python::bind_loss_scaler(m);
  python::bind_ranks(m);
  python::bind_resident_scaler(m);
  python::bind_rotary(m);
  python::bind_row_functions(m);
  python::bind_matmul(m);
  python::bind_optimizer(m);
  python::bind_tensor_places(m);
  python::bind_backends(m);
  python::bind_autocast(m);
}
