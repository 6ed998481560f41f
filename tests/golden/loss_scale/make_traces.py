# Records traces by running the files of Megatron, DeepSpeed and Apex themselves, and PyTorch.
#
#   python3 make_traces.py megatron  GRAD_SCALER.py             --commit C --out megatron.trace
#   python3 make_traces.py deepspeed LOSS_SCALER.py             --commit C --out deepspeed.trace
#   python3 make_traces.py apex_amp  SCALER.py                  --commit C --out apex_amp.trace
#   python3 make_traces.py apex      UPDATE_SCALE_HYSTERESIS.cu --commit C --out apex.trace
#   python3 make_traces.py torch     cuda                       --out torch.trace
#
# The files are run as they are, from wherever they lie; none of them is part of this project. What
# they import is replaced: `torch` by the few operations on one-element tensors that they use, in
# NumPy's float32, which rounds every operation as binary32 does; logging and process groups by
# nothing. Of the .cu file the kernel, which is plain C++, is compiled for the host. PyTorch's own kernel
# needs a GPU; with cpu instead of cuda, its kernel for the CPU runs.
import argparse
import ctypes
import hashlib
import math
import os
import subprocess
import sys
import tempfile
import types

import numpy

import trace_format


class Tensor:
    """A one-element float32 tensor."""

    def __init__(self, value):
        self.value = numpy.float32(value)

    def __mul__(self, other):
        with numpy.errstate(over="ignore", under="ignore"):
            return Tensor(self.value * other.value)

    def item(self):
        return float(self.value)


def stand_in_for_torch():
    torch = types.ModuleType("torch")
    torch.float, torch.half, torch.float16 = "float32", "float16", "float16"
    torch.tensor = lambda values, dtype, device: Tensor(values[0])
    torch.max = lambda a, b: Tensor(numpy.maximum(a.value, b.value))
    torch.cuda = types.SimpleNamespace(IntTensor=list)
    return torch


def module(name, **members):
    made = types.ModuleType(name)
    made.__path__ = []
    vars(made).update(members)
    sys.modules[name] = made
    return made


def execute(path, name):
    """The library's file as a module of that name."""
    with open(path, encoding="utf-8") as file:
        code = compile(file.read(), path, "exec")
    made = types.ModuleType(name)
    made.__package__ = name.rpartition(".")[0]
    sys.modules[name] = made
    exec(code, vars(made))
    return made


class Megatron:
    def __init__(self, library, settings):
        integers = ("growth_interval", "hysteresis")
        self.scaler = library.DynamicGradScaler(
            **{k: int(v) if k in integers else v for k, v in settings.items()})

    def scale(self):
        return self.scaler.state_dict()["scale"].item()

    def update(self, bad):
        self.scaler.update(bad)

    def counters(self):
        state = self.scaler.state_dict()
        return state["growth_tracker"], state["hysteresis_tracker"]


class DeepSpeed:
    def __init__(self, library, settings):
        settings = dict(settings)
        factor = settings.pop("scale_factor")
        flags = ("consecutive_hysteresis", "raise_error_at_min_scale")
        integers = ("scale_window", "delayed_shift")
        self.scaler = library.DynamicLossScaler(
            **{k: bool(v) if k in flags else int(v) if k in integers else v
               for k, v in settings.items()})
        self.scaler.scale_factor = factor  # no argument of the constructor

    def scale(self):
        return float(self.scaler.loss_scale)

    def update(self, bad):
        try:
            self.scaler.update_scale(bad)
        except Exception as error:
            assert "already at minimum" in str(error), error
            raise RuntimeError from error

    def counters(self):
        return (self.scaler.cur_iter, self.scaler.last_overflow_iter, self.scaler.cur_hysteresis)


class ApexAmp:
    def __init__(self, library, settings):
        self.scaler = library.LossScaler(
            "dynamic", init_scale=settings["init_scale"],
            scale_window=int(settings["scale_window"]),
            min_loss_scale=settings["min_loss_scale"] or None,
            max_loss_scale=settings["max_loss_scale"])

    def scale(self):
        return float(self.scaler.loss_scale())

    def update(self, bad):
        # As amp.handle.scale_loss does, with what unscale() would have found.
        self.scaler.clear_overflow_state()
        self.scaler._has_overflow = bad
        assert self.scaler.update_scale() == bad

    def counters(self):
        return (self.scaler._unskipped,)


class Apex:
    def __init__(self, library, settings):
        self.library, self.settings = library, settings
        self.state = (ctypes.c_float(settings["init_scale"]), ctypes.c_int(0),
                      ctypes.c_int(int(settings["hysteresis"])))

    def scale(self):
        return self.state[0].value

    def update(self, bad):
        found = ctypes.c_float(bad)
        self.library.run(*map(ctypes.byref, self.state), ctypes.byref(found),
                         ctypes.c_double(self.settings["growth_factor"]),
                         ctypes.c_double(self.settings["backoff_factor"]),
                         ctypes.c_int(int(self.settings["growth_interval"])),
                         ctypes.c_int(int(self.settings["hysteresis"])))

    def counters(self):
        return self.state[1].value, self.state[2].value


def compiled_kernel(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    kernel = text[text.index("__global__"):text.index("at::Tensor")]
    name = kernel[kernel.index("void ") + 5:kernel.index("(")]
    source = "#include <cmath>\n#define __global__ static\nusing std::isfinite;\n" + kernel
    source += ("extern \"C\" void run(float* s, int* g, int* h, const float* f, double up, "
               f"double down, int n, int hn) {{ {name}(s, g, h, f, up, down, n, hn); }}\n")
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "kernel.cpp"), "w", encoding="utf-8") as file:
            file.write(source)
        subprocess.run(["g++", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "kernel.cpp", "-o",
                        "kernel.so"], check=True, cwd=folder)
        return ctypes.CDLL(os.path.join(folder, "kernel.so"))


def torch_on(device):
    """An adapter of PyTorch's GradScaler. Every step is a whole one: scale(), a gradient that is 1 or Inf, step()
    with an optimizer that counts, update(), get_scale()."""
    import torch

    class Counting(torch.optim.Optimizer):
        def __init__(self, parameters):
            super().__init__(parameters, {})
            self.steps = 0

        def step(self):
            self.steps += 1

    class Torch:
        def __init__(self, library, settings):
            self.scaler = library(
                device, **{k: int(v) if k == "growth_interval" else v for k, v in settings.items()})
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

    source = {"library": "torch " + torch.__version__, "commit": torch.version.git_version,
              "device": torch.cuda.get_device_name() if device == "cuda" else "cpu"}
    return torch.amp.GradScaler, Torch, source


def load(policy, path):
    """The library and the adapter that drives it."""
    if policy == "apex":
        return compiled_kernel(path), Apex
    sys.modules["torch"] = stand_in_for_torch()
    if policy == "megatron":
        return execute(path, "grad_scaler"), Megatron
    if policy == "deepspeed":
        for package in ("deepspeed", "deepspeed.runtime"):
            module(package)
        module("deepspeed.runtime.config_utils", DeepSpeedConfigObject=object)
        comm = module("deepspeed.comm", get_rank=lambda: 0)
        sys.modules["deepspeed"].comm = comm
        module("deepspeed.utils", logger=types.SimpleNamespace(info=lambda message: None))
        return execute(path, "deepspeed.runtime.loss_scaler"), DeepSpeed
    for package in ("apex", "apex.amp"):
        module(package)
    module("apex.multi_tensor_apply", multi_tensor_applier=types.SimpleNamespace(
        available=False, import_err=None))
    module("apex.amp._amp_state", _amp_state=None, master_params=None,
           maybe_print=lambda *arguments: None)
    return execute(path, "apex.amp.scaler"), ApexAmp


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("policy", choices=list(trace_format.SETTINGS))
    parser.add_argument("file")
    parser.add_argument("--commit")
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    made = {"made by": "make_traces.py " + arguments.policy}
    if arguments.policy == "torch":
        library, adapter, source = torch_on(arguments.file)
        source |= made
    elif arguments.commit is None:
        parser.error("--commit is needed")
    else:
        library, adapter = load(arguments.policy, arguments.file)
        with open(arguments.file, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        source = {"file": os.path.basename(arguments.file), "sha256": digest, "commit": arguments.commit,
                  **made, "numpy": numpy.__version__}
    trace_format.write(arguments.out, arguments.policy,
                       lambda settings: adapter(library, settings), source)


if __name__ == "__main__":
    main()
