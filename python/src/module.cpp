// The module samebits._core.
#include "call.hpp"
#include "samebits/core/config.hpp"

NB_MODULE(_core, m) {
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
#define SAMEBITS_PYTHON_BIND(name) samebits::python::bind_##name(m);
  SAMEBITS_PYTHON_FILES(SAMEBITS_PYTHON_BIND)
}
