// Access for backends to the private data of public classes.
#pragma once

namespace samebits::backends {

/// Friend class of tensor_list, quantize_list and shard_layout.
struct access {
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
