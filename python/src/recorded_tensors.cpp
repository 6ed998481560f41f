// What a recorder notes of the arguments and results of PyTorch's operators. Each tensor is a place
// in a memory block. In Python this would take several times as long.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "call.hpp"
#include "exchange.hpp"

namespace samebits::python {
namespace {

nb::object interned(const char* name) { return nb::steal(PyUnicode_InternFromString(name)); }

nb::object list_of(const std::int64_t* numbers, std::int32_t count) {
  nb::object list = nb::steal(PyList_New(count));
  for (std::int32_t i = 0; i < count; ++i) {
    PyList_SetItem(list.ptr(), i, PyLong_FromLongLong(numbers[i]));
  }
  return list;
}

// Encodes arguments and results as lists, dicts, numbers and texts; equal tensors share their lists.
// Calls methods of the recorder, a Python object, for what is rare.
class tensor_encoder {
 public:
  // names: of dtypes. blocks: the recording's list. references: gets weak references to blocks; while
  // they live, no other block has the address of one.
  tensor_encoder(nb::dict names, nb::list blocks, nb::list references)
      : names_(std::move(names)), listed_(std::move(blocks)), references_(std::move(references)) {}

  // Begins an operator. numbers: ids of the tensors that its kernel gets as numbers.
  void begin(nb::set numbers) {
    known_.clear();
    numbers_ = std::move(numbers);
  }

  // made: whether the operator has made the tensors in x.
  nb::object encode(nb::handle x, bool made, nb::handle recorder) {
    PyObject* const p = x.ptr();
    if (PyLong_Check(p) || PyUnicode_Check(p) || p == Py_None) return nb::borrow(x);
    if (is_tensor(x)) return encode_tensor(x, made, recorder);
    if (PyList_Check(p) || PyTuple_Check(p)) {
      nb::list list;
      for (const nb::handle item : nb::borrow<nb::sequence>(x)) {
        list.append(encode(item, made, recorder));
      }
      return list;
    }
    if (PyDict_Check(p)) {
      nb::dict dict;
      for (const auto& [key, value] : nb::borrow<nb::dict>(x)) {
        dict[key] = encode(value, made, recorder);
      }
      return dict;
    }
    if (PyFloat_Check(p) && std::isfinite(PyFloat_AsDouble(p))) return nb::borrow(x);
    return recorder.attr("_other")(x);
  }

  // Appends the encoded tensors that an operator has written to `written`, and for each [place, ""] to
  // `pairs`. counts: whether PyTorch will count one more write of each.
  void wrote(nb::list tensors, bool counts, nb::list pairs, nb::list written) {
    for (const nb::handle x : tensors) {
      const auto found = known_.find(x.ptr());
      if (found == known_.end() || std::exchange(found->second.wrote, true)) continue;
      const std::int64_t version = version_of(x);
      if (version != uncounted) blocks_[found->second.block].version = version + counts;
      nb::list pair;
      pair.append(found->second.layout->place);
      pair.append(empty_);
      pairs.append(pair);
      written.append(x);
    }
  }

  // Notes that a kernel of no operator may have written all of a tensor's block.
  void written_unseen(nb::handle x) {
    const auto found = numbers_of_blocks_.find(address_of(x.attr(untyped_storage_)()));
    if (found != numbers_of_blocks_.end()) blocks_[found->second].version = unseen;
  }

 private:
  static constexpr std::int64_t uncounted = -1;  // also: not known yet
  static constexpr std::int64_t unseen = -2;

  struct encoded_layout {
    std::vector<std::int64_t> words;  // offset, dtype, shape and strides
    nb::object encoded, place;        // {"t": place}
  };
  struct block {
    std::int64_t bytes;
    std::int64_t version;  // of its tensors, after an operator last saw them
    std::deque<encoded_layout> layouts;
  };
  struct known_tensor {
    std::size_t block;
    const encoded_layout* layout;
    bool wrote = false;
  };

  bool is_tensor(nb::handle x) const {
    const nb::handle type = reinterpret_cast<PyObject*>(Py_TYPE(x.ptr()));
    if (type.is(tensor_) || type.is(parameter_)) return true;
    const int instance = PyObject_IsInstance(x.ptr(), tensor_.ptr());
    if (instance < 0) throw nb::python_error();
    return instance == 1;
  }

  std::int64_t address_of(nb::handle storage) const {
    return nb::cast<std::int64_t>(nb::object(storage.attr(cdata_)));
  }

  std::int64_t version_of(nb::handle x) const {
    const nb::object version = nb::getattr(x, version_, nb::none());
    return version.is_none() ? uncounted
                             : nb::cast<std::int64_t>(version);  // none: of inference mode
  }

  nb::object encode_tensor(nb::handle x, bool made, nb::handle recorder) {
    const auto known = known_.find(x.ptr());
    if (known != known_.end()) return known->second.layout->encoded;
    dl_tensor t;
    const nb::object dtype = nb::getattr(x, dtype_);
    if (!names_.contains(dtype) || !is_dense(x, t)) return recorder.attr("_not_dense")(x);
    if (!made && t.dims == 0 && PySet_Size(numbers_.ptr()) > 0 &&
        numbers_.contains(nb::int_(reinterpret_cast<std::uintptr_t>(x.ptr())))) {
      return recorder.attr("_number")(x);
    }
    const std::size_t number = block_of(x, made, recorder);
    const encoded_layout& layout = layout_of(number, x, t, dtype);
    known_.emplace(x.ptr(), known_tensor{number, &layout});
    if (!made) check_version(x, number, layout.place, recorder);
    return layout.encoded;
  }

  // Whether a tensor's memory has its numbers, one code after another.
  bool is_dense(nb::handle x, dl_tensor& t) const {
    const exchange_table* const table = exchange_table_of(x, arrays_);
    if (table == nullptr) return false;
    try {
      t = describe_tensor(*table, x);
    } catch (nb::python_error&) {  // a sparse tensor, for example
      return false;
    }
    const bool empty = std::find(t.shape, t.shape + t.dims, 0) != t.shape + t.dims;
    const bool reachable = t.device.type <= dl_device::cuda_host && (t.data != nullptr || empty);
    return reachable && !x.attr(is_neg_)().is(Py_True);
  }

  std::size_t block_of(nb::handle x, bool made, nb::handle recorder) {
    const nb::object storage = x.attr(untyped_storage_)();
    const auto bytes = nb::cast<std::int64_t>(nb::object(storage.attr(nbytes_)()));
    const auto [found, is_new] =
        numbers_of_blocks_.try_emplace(address_of(storage), blocks_.size());
    if (!is_new && blocks_[found->second].bytes == bytes) return found->second;
    const std::size_t number = found->second = blocks_.size();  // a resized one is another block
    blocks_.push_back({bytes, uncounted, {}});
    references_.append(storage.attr(weak_ref_)());
    nb::dict entry;
    entry["bytes"] = bytes;
    listed_.append(entry);
    if (!made) recorder.attr("_add_source")(x, storage, entry);
    return number;
  }

  const encoded_layout& layout_of(std::size_t number, nb::handle x, const dl_tensor& t,
                                  nb::handle dtype) {
    words_.assign({nb::cast<std::int64_t>(nb::object(x.attr(storage_offset_)())),
                   t.type.code << 8 | t.type.bits});
    words_.insert(words_.end(), t.shape, t.shape + t.dims);
    words_.insert(words_.end(), t.strides, t.strides + t.dims);
    for (const encoded_layout& known : blocks_[number].layouts) {
      if (known.words == words_) return known;
    }
    nb::list place;
    place.append(number);
    place.append(words_[0]);
    place.append(list_of(t.shape, t.dims));
    place.append(list_of(t.strides, t.dims));
    place.append(names_[dtype]);
    nb::dict encoded;
    encoded["t"] = place;
    return blocks_[number].layouts.emplace_back(encoded_layout{words_, encoded, place});
  }

  void check_version(nb::handle x, std::size_t number, nb::handle place, nb::handle recorder) {
    const std::int64_t now = version_of(x);
    const std::int64_t before = blocks_[number].version;
    if (now == uncounted || now == before) return;
    blocks_[number].version = now;
    if (before != uncounted) recorder.attr("_written_elsewhere")(x, place, before == unseen);
  }

  nb::dict names_;
  nb::list listed_, references_;
  nb::set numbers_;
  nb::object arrays_ = nb::module_::import_("samebits.arrays");
  nb::object tensor_ = nb::module_::import_("torch").attr("Tensor");
  nb::object parameter_ = nb::module_::import_("torch.nn").attr("Parameter");
  nb::object untyped_storage_ = interned("untyped_storage"), nbytes_ = interned("nbytes");
  nb::object storage_offset_ = interned("storage_offset"), is_neg_ = interned("is_neg");
  nb::object cdata_ = interned("_cdata"), version_ = interned("_version"),
             dtype_ = interned("dtype");
  nb::object weak_ref_ = interned("_weak_ref"), empty_ = interned("");
  std::unordered_map<PyObject*, known_tensor> known_;  // of this operator
  std::unordered_map<std::int64_t, std::size_t>
      numbers_of_blocks_;  // by the address of their storage
  std::deque<block> blocks_;
  std::vector<std::int64_t> words_;
};

}  // namespace

void bind_recorded_tensors(nb::module_& m) {
  using nb::arg;
  nb::class_<tensor_encoder>(m, "TensorEncoder",
                             "Arguments and results of operators, for a recording.")
      .def(nb::init<nb::dict, nb::list, nb::list>(), arg("names"), arg("blocks"), arg("references"))
      .def("begin", &tensor_encoder::begin, arg("numbers"))
      .def("encode", &tensor_encoder::encode, arg("x").none(), arg("made"), arg("recorder"))
      .def("wrote", &tensor_encoder::wrote, arg("tensors"), arg("counts"), arg("pairs"),
           arg("written"))
      .def("written_unseen", &tensor_encoder::written_unseen, arg("x"));
}

}  // namespace samebits::python
