// A Python list of arrays as a tensor list of the library.
#pragma once

#include <string>
#include <vector>

#include "c_call.hpp"

namespace samebits::python {

/// Arrays of one call and the list that describes them. Lives as long as the call.
class tensor_list {
 public:
  /// @param arrays  a Python list
  /// @param names  a Python list of str, as long as `arrays`
  /// @param name  name of the argument in messages
  /// @param needs  whether the call writes the arrays
  /// @param format  format of integer codes and of tf32; -1: the dtype's own format
  tensor_list(nb::list arrays, nb::list names, const char* name, access needs, int format,
              void* stream);
  ~tensor_list() { samebits_tensor_list_destroy(list_); }
  tensor_list(const tensor_list&) = delete;
  tensor_list& operator=(const tensor_list&) = delete;

  [[nodiscard]] const samebits_tensor_list* get() const { return list_; }
  [[nodiscard]] std::size_t size() const { return arrays_.size(); }
  /// Returns the first array; of an empty list an array of NumPy without elements.
  [[nodiscard]] const array& first() const;
  [[nodiscard]] std::int64_t elements() const { return elements_; }

 private:
  std::vector<std::string> names_;
  std::vector<array> arrays_;
  std::int64_t elements_ = 0;
  samebits_tensor_list* list_ = nullptr;
};

/// Returns a report as (elements, nonfinite, overflowed, first bad tensor, amax bits).
nb::tuple tuple_of(const samebits_unscale_report& r);

}  // namespace samebits::python
