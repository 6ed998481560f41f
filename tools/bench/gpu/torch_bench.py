"""torch_bench: PyTorch's casts on a GPU beside a plain device copy, timed as gpu_bench does.

usage: torch_bench.py [--log2-elements N] [--lists | --arith | --functions | --rows ROWS COLS | --fused ROWS COLS |
                       --host-time LIBRARY]
Prints the same table, to be read next to gpu_bench's of the same machine and hour; with --lists
PyTorch's work over lists of gradients, next to gpu_list_bench's; with --arith its arithmetic and
reductions over arrays of 2^N bytes, next to gpu_arithmetic_bench's; with --functions its functions of
2^N elements, next to gpu_function_bench's, whose N is 28; with --rows functions of rows, losses and their
gradients of bf16 matrices, by samebits, PyTorch and torch.compile; with --fused fused operators of bf16 matrices,
by samebits and PyTorch; with --host-time the time that the host spends in one small convert() of LIBRARY,
libgpu_host_time.so, and in one copy_.
"""

import argparse
import ctypes
import statistics
import time

import torch


def stochastic_bf16(x):
    """Stochastic rounding with 16 random bits, as torch users write it; not reproducible elsewhere."""
    bits = x.view(torch.int32)
    noise = torch.randint_like(bits, 0, 1 << 16)
    return ((bits + noise) & -65536).view(torch.float32).to(torch.bfloat16)


def conversions(count):
    """(name, bytes moved, call) of PyTorch's casts, the copy first."""
    source = torch.randn(count, device="cuda")
    other = torch.empty_like(source)
    half, brain = source.to(torch.float16), source.to(torch.bfloat16)
    targets = {"fp16": torch.float16, "bf16": torch.bfloat16,
               "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
    results = {name: torch.empty(count, device="cuda", dtype=t) for name, t in targets.items()}
    work = [("copy", 8 * count, lambda: other.copy_(source))]
    for name in targets:
        work.append((f"fp32 to {name}, torch", (4 + results[name].element_size()) * count,
                     lambda n=name: results[n].copy_(source)))
    for label, tensor in (("bf16", brain), ("fp16", half)):
        for name in ("e4m3", "e5m2"):
            work.append((f"{label} to {name}, torch", 3 * count,
                         lambda n=name, t=tensor: results[n].copy_(t)))
    compiled = torch.compile(stochastic_bf16)
    work.append(("fp32 to bf16, stochastic K=16, torch.compile", 6 * count, lambda: compiled(source)))
    return work


def model_sizes():
    """The tensors of gpu_list_bench's model."""
    d, layers, words = 2048, 24, 50304
    layer = [3 * d * d, d * d, 4 * d * d, 4 * d * d, 3 * d, d, 4 * d, d, d, d, d, d]
    return [words * d] + layers * layer


def timed(run, device, device_ms, host_ms, whole=False):
    """Appends milliseconds on the device, and until the host may go on; `whole`: from call to end."""
    if device != "cpu":
        torch.cuda.synchronize()
    if device == "cpu" or whole:
        begin = time.perf_counter()
        run()
        host_ms.append((time.perf_counter() - begin) * 1e3)
        if device != "cpu":
            torch.cuda.synchronize()
        device_ms.append((time.perf_counter() - begin) * 1e3)
        return
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(20_000_000)  # the device begins when the host has enqueued everything
    first.record()
    begin = time.perf_counter()
    run()
    host_ms.append((time.perf_counter() - begin) * 1e3)
    last.record()
    last.synchronize()
    device_ms.append(first.elapsed_time(last))


def lists():
    """The same of what PyTorch's scaler and clipping do over lists of gradients."""
    source = torch.randn(3 << 28, device="cuda")
    other = torch.empty_like(source)
    work = [("copy", 8 * source.numel(), lambda: other.copy_(source))]
    found, one = torch.zeros(1, device="cuda"), torch.ones(1, device="cuda")
    for label, kind in (("fp32", torch.float32), ("fp16", torch.float16), ("bf16", torch.bfloat16)):
        for sizes in (model_sizes(), 10_000 * [1000]):
            tensors = [torch.full((n,), 0.5, device="cuda", dtype=kind) for n in sizes]
            size = sum(sizes) * tensors[0].element_size()
            of = f"{label}, {len(sizes)} tensors"
            work.append((f"_foreach_norm, {of}, torch", size,
                         lambda t=tensors: torch._foreach_norm(t)))
            if kind == torch.float32:
                halves = [torch.empty(n, device="cuda", dtype=torch.bfloat16) for n in sizes]
                work.append((f"_foreach_copy_ to bf16, {of}, torch", size * 3 / 2,
                             lambda h=halves, t=tensors: torch._foreach_copy_(h, t)))
                work.append((f"_foreach_copy_ bf16 to fp32, {len(sizes)} tensors, torch",
                             size * 3 / 2, lambda h=halves, t=tensors: torch._foreach_copy_(t, h)))
            if kind != torch.bfloat16:  # PyTorch's scaler refuses bf16
                work.append((f"check and unscale, {of}, torch", 2 * size,
                             lambda t=tensors: torch._amp_foreach_non_finite_check_and_unscale_(
                                 t, found, one)))
    return work


def arithmetic(size):
    """The same of arithmetic and reductions over arrays of `size` bytes."""
    source = torch.randn(size // 4, device="cuda")
    copied = torch.empty_like(source)
    work = [("copy", 2 * size, lambda: copied.copy_(source))]
    for label, kind in (("fp32", torch.float32), ("fp16", torch.float16), ("bf16", torch.bfloat16)):
        count = size // torch.empty(0, dtype=kind).element_size()
        a, b, c = (torch.randn(count, device="cuda", dtype=kind) for _ in range(3))
        out = torch.empty_like(a)
        work += [
            (f"add {label}, torch", 3 * size, lambda a=a, b=b, o=out: torch.add(a, b, out=o)),
            (f"mul {label}, torch", 3 * size, lambda a=a, b=b, o=out: torch.mul(a, b, out=o)),
            (f"addcmul {label}, torch", 4 * size,
             lambda a=a, b=b, c=c, o=out: torch.addcmul(c, a, b, out=o)),
            (f"div {label}, torch", 3 * size, lambda a=a, b=b, o=out: torch.div(a, b, out=o)),
            (f"sqrt {label}, torch", 2 * size, lambda a=a, o=out: torch.sqrt(a, out=o)),
            (f"amax of abs {label}, torch", size,
             lambda a=a: torch.linalg.vector_norm(a, ord=float("inf"))),
            (f"sum {label}, torch", size, lambda a=a: torch.sum(a, dtype=torch.float32)),
            (f"norm {label}, torch", size,
             lambda a=a: torch.linalg.vector_norm(a, dtype=torch.float32)),
            (f"dot {label}, torch", 2 * size, lambda a=a, b=b: torch.dot(a, b)),
        ]
    return work


def functions(count):
    """PyTorch's functions of `count` normally distributed elements, beside a copy."""
    source = torch.randn(count, device="cuda")
    other = torch.empty_like(source)
    work = [("copy", 8 * count, lambda: other.copy_(source))]
    f = torch.nn.functional
    plain = {"exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1, "tanh": torch.tanh,
             "erf": torch.erf, "sigmoid": torch.sigmoid, "silu": f.silu, "gelu": f.gelu,
             "gelu_tanh": lambda x: f.gelu(x, approximate="tanh"), "softplus": f.softplus}
    of_magnitudes = {"log": torch.log, "log2": torch.log2, "log1p": torch.log1p,
                     "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal}
    for label, kind in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        x = source.to(kind)
        size = x.abs()
        moved = 2 * x.element_size() * count
        for group, operand in ((plain, x), (of_magnitudes, size)):
            for name, of in group.items():
                work.append((f"{name} {label}, torch", moved, lambda o=of, x=operand: o(x)))
        for name, backward in (
                ("silu", torch.ops.aten.silu_backward), ("gelu", torch.ops.aten.gelu_backward),
                ("gelu_tanh", lambda g, x: torch.ops.aten.gelu_backward(g, x, approximate="tanh"))):
            work.append((f"{name} gradient {label}, torch", moved * 3 / 2,
                         lambda b=backward, g=size, x=x: b(g, x)))
    return work


def host_time(library, count=1024, calls=200, rounds=31):
    """Microseconds of the host for one call that only enqueues; both from Python, in turn."""
    ours = ctypes.CDLL(library)
    source = torch.randn(count, device="cuda")
    result = torch.empty(count, device="cuda", dtype=torch.bfloat16)
    for s in (torch.cuda.default_stream(), torch.cuda.Stream()):
        stream = ctypes.c_void_p(s.cuda_stream)
        arguments = (ctypes.c_void_p(source.data_ptr()), ctypes.c_void_p(result.data_ptr()),
                     ctypes.c_int64(count), stream)
        convert, many, copy = ours.samebits_convert, ours.samebits_convert_many, result.copy_
        times = {"copy_, torch": [], "convert, from Python": [], "convert, from C++": []}

        def one_by_one(call, *given):
            for _ in range(calls):
                call(*given)

        works = {"copy_, torch": lambda: one_by_one(copy, source),
                 "convert, from Python": lambda: one_by_one(convert, *arguments),
                 "convert, from C++": lambda: many(*arguments, ctypes.c_int(calls))}
        with torch.cuda.stream(s):
            for _ in range(rounds):
                for name, work in works.items():
                    torch.cuda.synchronize()
                    begin = time.perf_counter()
                    work()
                    times[name].append((time.perf_counter() - begin) / calls * 1e6)
        torch.cuda.synchronize()
        assert torch.equal(result, source.to(torch.bfloat16))
        kind = "default stream" if s.cuda_stream == 0 else "own stream"
        peer = statistics.median(times["copy_, torch"])
        print(f"| host time of one call, {kind} | us | of copy_ |\n|---|---|---|")
        for name, seen in times.items():
            middle = statistics.median(seen)
            print(f"| {name} | {middle:.2f} | {middle / peer:.2f} |")


def rows(count, cols):
    """(name, bytes moved, call) of functions of `count` rows of bf16 by this library, PyTorch and torch.compile."""
    from samebits import functions as ours

    aten, F, rule = torch.ops.aten, torch.nn.functional, {"rule": "torch_2_11"}
    x, grad = (torch.randn(count, cols, device="cuda").bfloat16() for _ in range(2))
    weight, bias = (torch.randn(cols, device="cuda").bfloat16() for _ in range(2))
    targets, one = torch.randint(cols, (count,), device="cuda"), torch.ones((), device="cuda").bfloat16()
    out, leaf, size = torch.empty_like(x), x.clone().requires_grad_(), 2 * x.numel()
    y, z = torch.softmax(x, -1), torch.log_softmax(x, -1)
    _, mean, rstd = aten.native_layer_norm(x, [cols], weight, bias, 1e-5)
    root = aten._fused_rms_norm(x, [cols], weight, 1e-5)[1]

    def trained(loss):
        leaf.grad = None
        loss(leaf, targets).backward()

    forward = {
        "softmax": (lambda: ours.softmax(x, out=out, **rule), lambda x: torch.softmax(x, -1)),
        "log_softmax": (lambda: ours.log_softmax(x, out=out, **rule), lambda x: torch.log_softmax(x, -1)),
        "layer_norm": (lambda: ours.layer_norm(x, weight, bias, out=out, **rule),
                       lambda x: F.layer_norm(x, [cols], weight, bias)),
        "rms_norm": (lambda: ours.rms_norm(x, weight, out=out, **rule), lambda x: F.rms_norm(x, [cols], weight)),
    }
    backward = {
        "softmax": (lambda: ours.softmax_gradient(grad, y, out=out, **rule),
                    lambda: aten._softmax_backward_data(grad, y, -1, x.dtype)),
        "log_softmax": (lambda: ours.log_softmax_gradient(grad, z, out=out, **rule),
                        lambda: aten._log_softmax_backward_data(grad, z, -1, x.dtype)),
        "layer_norm": (lambda: ours.layer_norm_gradient(grad, x, mean, rstd, weight, out=out, **rule),
                       lambda: aten.native_layer_norm_backward(grad, x, [cols], mean, rstd, weight, bias,
                                                               [True, False, False])),
        "layer_norm with parameters": (
            lambda: (ours.layer_norm_gradient(grad, x, mean, rstd, weight, out=out, **rule),
                     ours.norm_parameter_gradients(grad, x, rstd, mean, **rule)),
            lambda: aten.native_layer_norm_backward(grad, x, [cols], mean, rstd, weight, bias, [True] * 3)),
        "rms_norm": (lambda: ours.rms_norm_gradient(grad, x, root, weight, out=out, **rule),
                     lambda: aten._fused_rms_norm_backward(grad, x, [cols], root, weight, [True, False])),
    }
    work = [("copy", 2 * size, lambda: out.copy_(x))]
    for name, (call, eager) in forward.items():
        compiled = torch.compile(eager, dynamic=False)
        work += [(name, 2 * size, call), (f"{name}, torch", 2 * size, lambda f=eager: f(x)),
                 (f"{name}, torch.compile", 2 * size, lambda f=compiled: f(x))]
    for name, (call, eager) in backward.items():
        work += [(f"gradient of {name}", 3 * size, call), (f"gradient of {name}, torch", 3 * size, eager)]
    compiled = torch.compile(F.cross_entropy, dynamic=False)
    return [*work,
            ("cross entropy and gradient", 2 * size, lambda: ours.cross_entropy_and_gradient(one, x, targets, **rule)),
            ("cross entropy and gradient, torch", 2 * size, lambda: trained(F.cross_entropy)),
            ("cross entropy and gradient, torch.compile", 2 * size, lambda: trained(compiled))]


def fused(count, cols):
    """(name, bytes moved, call) of fused operators of bf16 matrices, in one pass and by PyTorch's operators."""
    import samebits.torch as sbt

    ours, F, of_aten, of_ours = sbt.functional, torch.nn.functional, torch.ops.aten, torch.ops.samebits
    x, y, grad = (torch.randn(count, cols, device="cuda").bfloat16() for _ in range(3))
    weight, size, words = torch.randn(cols, device="cuda").bfloat16(), 2 * x.numel(), 50304
    table = torch.randn(words, cols, device="cuda").bfloat16()
    chosen = torch.randint(words, (count,), device="cuda")
    angles = torch.randn(count, cols // 2, device="cuda").bfloat16()
    both = torch.cat((angles, angles), -1)
    _, mean, rstd = of_aten.native_layer_norm(x, [cols], weight, weight, 1e-5)
    hidden = torch.rand(cols, device="cuda") < 0.3

    def rotated(x):
        first, second = x.chunk(2, -1)
        return x * both + torch.cat((-second, first), -1) * both

    def gate_gradients():
        inner, up = grad * y, grad * F.silu(x)
        return of_aten.silu_backward(inner, x), up

    def of_sum():
        dx, _, _ = of_aten.native_layer_norm_backward(grad, x, [cols], mean, rstd, weight, weight, [True, False, False])
        return dx + y

    compared = {
        "swiglu": (3, lambda: ours.swiglu(x, y), lambda: F.silu(x) * y),
        "gradient of swiglu": (5, lambda: of_ours.gated_backward(grad, x, y, "silu"), gate_gradients),
        "bias and gelu_tanh": (2, lambda: ours.bias_gelu(x, weight, "tanh"),
                               lambda: F.gelu(x + weight, approximate="tanh")),
        "gradient of bias and gelu_tanh": (3, lambda: of_ours.biased_backward(grad, x, weight, "gelu_tanh"),
                                           lambda: of_aten.gelu_backward(grad, x + weight, approximate="tanh")),
        "rotary": (3, lambda: ours.rotary(x, angles, angles), lambda: rotated(x)),
        "embedding times scale": (2, lambda: ours.embedding(chosen, table, scale=3.0),
                                  lambda: F.embedding(chosen, table) * 3.0),
        "gradient of embedding": (1 + words / count, lambda: of_ours.embed_backward(grad, chosen, words, 1.0),
                                  lambda: of_aten.embedding_dense_backward(grad, chosen, words, -1, False)),
        "sum and layer_norm": (4, lambda: ours.add_layer_norm(x, y, cols, weight, weight),
                               lambda: F.layer_norm(x + y, [cols], weight, weight)),
        "gradient of sum and layer_norm": (
            4, lambda: of_ours.add_norm_backward(grad, y, x, [cols], mean, rstd, weight), of_sum),
        "softmax of scores": (2, lambda: ours.scaled_softmax(x, 0.125, hidden),
                              lambda: (x * 0.125).masked_fill(hidden, -torch.inf).softmax(-1)),
        "gradient of scores": (
            3, lambda: of_ours.scaled_softmax_backward(grad, y, 0.125, hidden, False),
            lambda: of_aten._softmax_backward_data(grad, y, -1, y.dtype).masked_fill(hidden, 0) * 0.125),
        "dropout": (2, lambda: ours.dropout(x, 0.1, seed=1), lambda: F.dropout(x, 0.1)),
    }
    work = [("copy", 2 * size, lambda: y.copy_(x))]
    for name, (moved, call, eager) in compared.items():
        work += [(name, moved * size, call), (f"{name}, torch", moved * size, eager)]
    return work


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--log2-elements", type=int, default=30)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--lists", action="store_true")
    kind.add_argument("--arith", action="store_true")
    kind.add_argument("--functions", action="store_true")
    kind.add_argument("--rows", type=int, nargs=2, metavar=("ROWS", "COLS"))
    kind.add_argument("--fused", type=int, nargs=2, metavar=("ROWS", "COLS"))
    kind.add_argument("--host-time", metavar="LIBRARY")
    arguments = parser.parse_args()
    if arguments.host_time:
        host_time(arguments.host_time)
        return
    if arguments.lists:
        work = lists()
    elif arguments.arith:
        work = arithmetic(1 << arguments.log2_elements)
    elif arguments.functions:
        work = functions(1 << arguments.log2_elements)
    elif arguments.rows:
        work = rows(*arguments.rows)
    elif arguments.fused:
        work = fused(*arguments.fused)
    else:
        work = conversions(1 << arguments.log2_elements)

    calls = 4  # between two events, enqueued while the device waits
    times = {name: [] for name, _, _ in work}
    for round_number in range(10):
        for name, _, run in work:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            if round_number > 0:
                torch.cuda._sleep(20_000_000)
            begin.record()
            for _ in range(calls):
                run()
            end.record()
            end.synchronize()
            if round_number > 0:
                times[name].append(begin.elapsed_time(end) / calls)
    copy = work[0][1] / statistics.median(times["copy"])
    print("| work | ms | GB/s | share of copy |\n|---|---|---|---|")
    for name, size, _ in work:
        ms = statistics.median(times[name])
        rate = size / ms
        print(f"| {name} | {ms:.3f} | {rate / 1e6:.0f} | {rate / copy:.3f} |")


if __name__ == "__main__":
    main()
