// Access for backends to the private data of public classes.
#pragma once

#include <utility>

namespace samebits::backends {

/// Friend class of tensor_list, quantize_list, optimizer_list and shard_layout.
struct access {
  /// Returns an object with this private data.
  template <class Public, class Data>
  static Public make(Data data) {
    Public object;
    object.data_ = std::move(data);
    return object;
  }
  template <class Public>
  static const auto& data(const Public& object) {
    return *object.data_;
  }
};

/// The private data of an object: list_data of a tensor_list, quantize_list_data of a
/// quantize_list, shard_data of a shard_layout.
template <class Public>
const auto& data_of(const Public& object) {
  return access::data(object);
}

}  // namespace samebits::backends
