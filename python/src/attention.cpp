// Scaled dot product attention, forward and backward.
#include "samebits/attention.hpp"

#include "call.hpp"

namespace samebits::python {
namespace {

/// The view of an array; without data if there is none.
tensor_view tensor_of(const array& a) {
  const auto dims = static_cast<std::size_t>(a.dims);
  return {a.data, a.format, {a.shape, dims}, {a.strides, dims}, a.memory};
}

array operand_of(nb::handle arrays, int i, const char* name, nb::handle format) {
  return array_of(item(arrays, i), {.name = name, .format = format_of(format)});
}

/// q, k and v.
struct attention_operands {
  attention_operands(nb::handle arrays, nb::handle format)
      : q(operand_of(arrays, 0, "q", format)),
        k(operand_of(arrays, 1, "k", format)),
        v(operand_of(arrays, 2, "v", format)) {}

  array q, k, v;
};

nb::tuple attention(nb::handle arrays, nb::handle how, nb::handle format, nb::handle out,
                    nb::handle where) {
  const attention_operands of(arrays, format);
  const auto options = options_of<attention_options>(how);
  const nb::handle q = item(arrays, 0);
  const output result = output_like(q, of.q, of.q.format, out);
  output lse{};
  const bool has_lse = options.kernel != attention_kernel::math;
  if (has_lse && of.q.dims == 4) lse = new_output(q, of.q, 3, of.q.shape, format_id::fp32);
  const executor on = executor_of(where, of.q, of.q.size());
  run([&] {
    samebits::attention(tensor_of(of.q), tensor_of(of.k), tensor_of(of.v), tensor_of(result.a),
                        tensor_of(lse.a), options, on);
  });
  return nb::make_tuple(result.object, object_of(lse));
}

nb::tuple attention_backward(nb::handle arrays, nb::handle how, nb::handle wants_dq,
                             nb::handle format, nb::handle where) {
  const attention_operands of(arrays, format);
  const auto options = options_of<attention_options>(how);
  const array grad = operand_of(arrays, 3, "grad", format);
  array out{}, lse{};
  if (!item(arrays, 4).is_none()) out = operand_of(arrays, 4, "out", format);
  if (!item(arrays, 5).is_none()) lse = operand_of(arrays, 5, "lse", nb::none());
  const nb::handle q = item(arrays, 0);
  const auto new_like = [&](const array& x) {
    return new_output(q, of.q, x.dims, x.shape, of.q.format);
  };
  output dq{};
  if (flag_of(wants_dq, "dq")) dq = new_like(of.q);
  const output dk = new_like(of.k), dv = new_like(of.v);
  const executor on = executor_of(where, of.q, of.q.size());
  run([&] {
    samebits::attention_backward(
        tensor_of(grad),
        {tensor_of(of.q), tensor_of(of.k), tensor_of(of.v), tensor_of(out), tensor_of(lse)},
        tensor_of(dq.a), tensor_of(dk.a), tensor_of(dv.a), options, on);
  });
  return nb::make_tuple(object_of(dq), dk.object, dv.object);
}

}  // namespace

void bind_attention(nb::module_& m) {
  def(m, "attention", &attention, "Returns attention and its log-sum-exps.");
  def(m, "attention_backward", &attention_backward,
      "Returns the gradients of attention's operands.");
}

}  // namespace samebits::python
