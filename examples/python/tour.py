"""A tour of samebits in Python: convert, look at losses, quantize, multiply, scale a loss."""

import numpy as np

import samebits as sb

rng = np.random.default_rng(0)
x = rng.standard_normal((4, 1024), dtype=np.float32)

print("--- convert: each element rounded once, by the rule that you name")
y = sb.convert(x, "e4m3", overflow="saturate")
z = sb.convert(x, "bf16", rounding="stochastic", seed=7)
print(y.dtype, y.shape, z.dtype)
print(x[0, :3], "->", sb.convert(y, "fp32")[0, :3])

print("--- formats")
for name in ("fp16", "bf16", "e4m3", "e5m2"):
    f = sb.finfo(name)
    print(f"{name}: max {f.max:g}, smallest normal {f.smallest_normal:g}, eps {f.eps:g}")

print("--- inspect: what a tensor holds, and what a format would lose")
gradients = {"layer.weight": x * np.float32(1e-6), "layer.bias": x[0] * np.float32(1e-3)}
report = sb.inspect(gradients)
print(report)
print(report.to("fp16"))
print(report.to("e5m2"))

print("--- quantize: 8-bit codes and a scale per tile, by another library's rules")
q = sb.quantize(x, "TE_BLOCK_1D", statistics=True)
print(q.codes.dtype, q.codes.shape, "scales", q.scales.shape, "by", q.recipe.name)
print(f"largest error {np.abs(q.dequantize() - x).max():.4f}, saturated {q.statistics.saturated}")

print("--- arithmetic with the flags of IEEE 754")
r = sb.multiply(x, x, to="bf16")
print(r.flags)

print("--- matmul: the bits of a tensor core, on the CPU")
a, w = sb.quantize(x[:2], "TE_CURRENT"), sb.quantize(x[2:], "TE_CURRENT", transposed=True)
p = sb.predict(a, w.transposed, "hopper_fp8")
print(p.value, f"evidence: {p.evidence}, {p.error.unequal} of {p.error.count} differ from exact")

print("--- loss scaler: PyTorch's rule, its bits")
scaler = sb.LossScaler("torch", init_scale=65536.0, growth_interval=2)
for step, largest in enumerate((1.0, np.inf, 1.0, 1.0)):
    g = {"w": np.float32([0.5, largest]) * np.float32(scaler.get_scale())}
    seen = scaler.unscale(g)
    applied = scaler.step(lambda: None)
    decision = scaler.update()
    print(f"step {step}: applied {applied}, first bad {seen.first_bad}, scale {decision.change}"
          f" to {scaler.get_scale():g}")

print("--- what is wrong is said")
try:
    sb.convert(x, "e4m4")
except sb.InvalidArgument as error:
    print(error)
