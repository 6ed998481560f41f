// Merges axes of arrays, and refuses arrays whose axes cannot be merged.
#include "slices.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "errors.hpp"

namespace samebits::python {
namespace {

// The stride of an operand along an axis of the common shape; 0 where the operand repeats.
std::int64_t stride_at(const array& a, int dims, int axis) {
  const int own = axis - (dims - a.dims);
  return own < 0 || a.shape[own] == 1 ? 0 : a.strides[own];
}

// Whether the axes `outer` and `inner` are one axis in the memory of each array.
bool merges(const slices& s, int outer, int inner) {
  for (int i = 0; i < s.operands; ++i) {
    if (s.strides[i][inner] < 0) return false;
    if (s.strides[i][outer] != s.strides[i][inner] * s.sizes[inner]) return false;
  }
  return true;
}

void merge_axes(slices& s) {
  int kept = 0;
  for (int axis = 1; axis < s.loops; ++axis) {
    if (merges(s, kept, axis)) {
      s.sizes[kept] *= s.sizes[axis];
    } else {
      s.sizes[++kept] = s.sizes[axis];
    }
    for (int i = 0; i < s.operands; ++i) s.strides[i][kept] = s.strides[i][axis];
  }
  if (s.loops > 0) s.loops = kept + 1;
}

bool negative_along(const slices& s, int axis) {
  for (int i = 0; i < s.operands; ++i) {
    if (s.strides[i][axis] < 0) return true;
  }
  return false;
}

[[noreturn]] void refuse_layout(const operand& of, const char* what) {
  const std::string name = of.name;
  const bool torch = of.a->library != nullptr;
  raise_invalid(name + ": " + what + "; pass " +
                (torch ? name + ".contiguous()" : "np.ascontiguousarray(" + name + ")"));
}

}  // namespace

slices slices_of(int dims, const std::int64_t* shape, const operand* operands, int count) {
  slices s;
  s.operands = count;
  for (int axis = 0; axis < dims; ++axis) {
    if (shape[axis] == 0) {  // no element at all
      s.loops = 0;
      s.rows = s.cols = 0;
      return s;
    }
    if (shape[axis] == 1) continue;
    s.sizes[s.loops] = shape[axis];
    for (int i = 0; i < count; ++i) {
      s.strides[i][s.loops] = stride_at(*operands[i].a, dims, axis);
    }
    ++s.loops;
  }
  merge_axes(s);
  std::int64_t flat = 1;
  for (int axis = s.loops - 1; axis >= 0; --axis) {
    s.flat_strides[axis] = flat;
    flat *= s.sizes[axis];
  }
  if (s.loops > 0) {
    const int last = --s.loops;
    s.cols = s.sizes[last];
    for (int i = 0; i < count; ++i) {
      s.col_strides[i] = s.strides[i][last];
      if (s.col_strides[i] < 0) {
        refuse_layout(operands[i], "the last axis has a negative stride");
      }
      s.row_strides[i] = s.cols * s.col_strides[i];
    }
  }
  if (s.loops > 0 && !negative_along(s, s.loops - 1)) {
    const int next = --s.loops;
    s.rows = s.sizes[next];
    for (int i = 0; i < count; ++i) s.row_strides[i] = s.strides[i][next];
  }
  return s;
}

matrix matrix_of(const operand& of) {
  const array& a = *of.a;
  if (a.dims == 0) return {1, 1, 1, 1};
  const std::int64_t cols = a.shape[a.dims - 1];
  const std::int64_t col_stride = cols > 1 ? a.strides[a.dims - 1] : 1;
  std::int64_t rows = 1;
  std::int64_t row_stride = 0;  // no axis has been merged yet
  if (a.size() == 0) {
    for (int i = 0; i + 1 < a.dims; ++i) rows *= a.shape[i];
    return {rows, cols, cols, 1};
  }
  for (int i = a.dims - 2; i >= 0; --i) {
    if (a.shape[i] == 1) continue;
    if (rows == 1) {
      row_stride = a.strides[i];
    } else if (a.strides[i] != row_stride * rows) {
      refuse_layout(of, "the leading axes are not one axis of rows in memory");
    }
    rows *= a.shape[i];
  }
  if (col_stride < 0 || row_stride < 0) refuse_layout(of, "an axis has a negative stride");
  return {rows, cols, rows == 1 ? cols * col_stride : row_stride, col_stride};
}

namespace {

struct extent {
  const char* begin;
  const char* end;
};

extent extent_of(const array& a) {
  extent e = {a.data, a.data};
  if (a.size() == 0) return e;
  for (int i = 0; i < a.dims; ++i) {
    const std::int64_t reach = (a.shape[i] - 1) * a.strides[i] * a.bytes;
    (reach < 0 ? e.begin : e.end) += reach;
  }
  e.end += a.bytes;
  return e;
}

bool same_elements(const array& a, const array& b) {
  if (a.data != b.data || a.bytes != b.bytes || a.dims != b.dims) return false;
  for (int i = 0; i < a.dims; ++i) {
    if (a.shape[i] != b.shape[i]) return false;
    if (a.shape[i] > 1 && a.strides[i] != b.strides[i]) return false;
  }
  return true;
}

// Whether the elements of an array surely lie at distinct addresses: each stride steps over all
// axes with smaller strides. Slices, transposes and reversed axes of an ordinary array do so.
bool elements_are_distinct(const array& a) {
  if (a.size() == 0) return true;
  int order[max_dims];
  int axes = 0;
  for (int i = 0; i < a.dims; ++i) {
    if (a.shape[i] > 1) order[axes++] = i;
  }
  const auto step = [&](int axis) { return std::abs(a.strides[axis]); };
  std::sort(order, order + axes, [&](int i, int j) { return step(i) < step(j); });
  std::int64_t reach = 0;  // of the axes so far, in elements
  for (int i = 0; i < axes; ++i) {
    if (step(order[i]) <= reach) return false;
    reach += (a.shape[order[i]] - 1) * step(order[i]);
  }
  return true;
}

}  // namespace

void check_overlap(const operand& out, const operand* in, int count) {
  if (!elements_are_distinct(*out.a)) {
    raise_invalid(std::string(out.name) + ": elements share memory; pass an ordinary array");
  }
  const extent o = extent_of(*out.a);
  for (int i = 0; i < count; ++i) {
    const extent e = extent_of(*in[i].a);
    if (e.begin < o.end && o.begin < e.end && !same_elements(*out.a, *in[i].a)) {
      raise_invalid(std::string(out.name) + " and " + in[i].name +
                    ": they share memory in part; pass a copy of one of them");
    }
  }
}

}  // namespace samebits::python
