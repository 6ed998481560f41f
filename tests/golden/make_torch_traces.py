# Records traces by running PyTorch's GradScaler; its kernel needs a GPU (--device cpu runs
# the CPU one).
#
#   python3 tests/golden/make_torch_traces.py --out tests/golden/loss_scale/torch.trace
#
# Every step is a whole one: scale(), a gradient that is 1 or Inf, step() with an optimizer that
# counts, update(), get_scale().
import argparse
import math
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "loss_scale"))
import trace_format  # noqa: E402


class Counting(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {})
        self.steps = 0

    def step(self):
        self.steps += 1


class Torch:
    def __init__(self, device, settings):
        self.scaler = torch.amp.GradScaler(
            device, init_scale=settings["init_scale"], growth_factor=settings["growth_factor"],
            backoff_factor=settings["backoff_factor"],
            growth_interval=int(settings["growth_interval"]))
        self.loss = torch.zeros((), device=device)
        self.parameter = torch.zeros(1, device=device, requires_grad=True)
        self.parameter.grad = torch.zeros(1, device=device)
        self.optimizer = Counting([self.parameter])
        self.scaler.scale(self.loss)  # from here on get_scale() reads the device

    def scale(self):
        return self.scaler.get_scale()

    def update(self, bad):
        self.scaler.scale(self.loss)
        self.parameter.grad.fill_(math.inf if bad else 1.0)
        before = self.optimizer.steps
        self.scaler.step(self.optimizer)
        assert self.optimizer.steps == before + (not bad)
        self.scaler.update()

    def counters(self):
        return (self.scaler.state_dict()["_growth_tracker"],)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    source = {"library": "torch " + torch.__version__, "commit": torch.version.git_version,
              "device": torch.cuda.get_device_name() if arguments.device == "cuda" else "cpu",
              "made by": f"make_torch_traces.py --device {arguments.device}"}
    trace_format.write(arguments.out, "torch", lambda settings: Torch(arguments.device, settings),
                       source)


if __name__ == "__main__":
    main()
