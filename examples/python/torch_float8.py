"""Linear layers in FP8 in PyTorch: which layers, which recipe, and the same bits on CPU and GPU."""

import copy
import json
import pathlib
import tempfile

import torch

import samebits.torch as sbt


def title(text):
    print(f"--- {text}")


torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64), torch.nn.ReLU(),
    torch.nn.Linear(64, 10))

title("a map says the precision of each layer")
path = pathlib.Path(tempfile.mkdtemp(), "precision.json")
path.write_text(json.dumps({"version": 1, "layers": {"0": "TE_BLOCK_1D", "2": "TE_CURRENT",
                                                     "4": "bf16"}}))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
sbt.convert_linears(model, sbt.load_precision_map(path))  # the optimizer keeps its Parameters
print(model)

title("training")
x = torch.randn(256, 64)
target = torch.tanh(x[:, :10])
losses = []
for _ in range(60):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), target)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("the loss fell to less than a quarter:", losses[-1] < losses[0] / 4)

title("what a layer multiplies")
q = sbt.quantize_activations(x, "TE_BLOCK_1D", transposed=True)
w = sbt.quantize_weights(model[0].weight, "TE_BLOCK_1D", transposed=True)
operands = {"x": q.direct, "x^T": q.transposed, "w": w.direct, "w^T": w.transposed}
for name, operand in operands.items():
    print(f"{name:4}codes {list(operand.codes.shape)}, tiles {operand.recipe.tile}, "
          f"scales {list(operand.scales.shape)}")

title("CPU and GPU")
print(model[0].recipe.coverage)


def results(layer, device):
    layer = copy.deepcopy(layer).to(device)
    inputs = x.to(device).requires_grad_()
    y = layer(inputs)
    gradients = torch.autograd.grad(y.square().sum(), [inputs, *layer.parameters()])
    return [t.detach().cpu() for t in (y, *gradients)]


if torch.cuda.is_available():
    for layer in (model[0], model[2]):
        x = torch.randn(256, layer.in_features)
        pairs = list(zip(results(layer, "cpu"), results(layer, "cuda")))
        print(sum(int((a != b).sum()) for a, b in pairs), "of", sum(a.numel() for a, _ in pairs),
              "results differ")
else:
    print("no GPU here")

title("what is wrong is said")
try:
    sbt.convert_linears(model, "TE_CURRENT")
except ValueError as error:
    print(error)
