// A Python list of arrays as a tensor list of the library.
#pragma once

#include <vector>

#include "call.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits::python {

/// Returns one array of a list as a tensor.
///
/// @param name  of the array, a Python str
/// @param list  name of the list's argument in messages
/// @param what  how the call uses the array, without a name
/// @param a  receives the array, which the tensor needs
list_tensor tensor_of(nb::handle x, nb::handle name, const char* list, argument what, array& a);

/// mark_written() of the torch tensors of a list.
void mark_written(nb::handle list, const std::vector<array>& arrays);

/// Arrays of one call and the list that describes them. Lives as long as the call.
class listed_arrays {
 public:
  /// @param arrays  a Python list
  /// @param names  a Python list of str, as long as `arrays`
  /// @param name  name of the argument in messages
  /// @param needs  whether the call writes the arrays
  /// @param format  format of integer codes and of tf32; None: the dtype's own format
  /// @param where  (threads, backend, stream)
  listed_arrays(nb::list arrays, nb::list names, const char* name, access needs, nb::handle format,
                nb::handle where);

  [[nodiscard]] const tensor_list& get() const { return list_; }
  [[nodiscard]] std::int64_t elements() const { return elements_; }
  /// Returns the executor of a call on these arrays.
  [[nodiscard]] const executor& on() const { return on_; }

 private:
  std::vector<array> arrays_;
  std::int64_t elements_ = 0;
  executor on_;
  tensor_list list_;
};

/// Returns the name at a position of a list; None for a negative position.
nb::object name_at(nb::list names, std::int64_t position);

/// Returns the fields of samebits.UnscaleReport.
nb::tuple tuple_of(const unscale_report& r, nb::list names);

}  // namespace samebits::python
