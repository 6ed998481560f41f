#!/usr/bin/env python3
"""Writes adam.pt and adam.pth with PyTorch: one checkpoint in its zip format and in its old format.

usage: make_torch_files.py FOLDER
The numbers are those of tests/cli/torch_files_test.py.
"""

import argparse
import collections
import pathlib
import sys

import torch


def ramp(count, start=0):
    return torch.arange(start, start + count, dtype=torch.float32) / 8


def checkpoint():
    weight = ramp(12).reshape(3, 4)
    model = collections.OrderedDict([
        ("layers.0.weight", torch.nn.Parameter(weight)),
        ("layers.0.bias", ramp(3, 100)),
        ("tied.weight", weight),
        ("transposed", weight.T),
        ("column", weight[:, 1]),
        ("half", ramp(4).to(torch.bfloat16)),
        ("e4m3", ramp(4, 8).to(torch.float8_e4m3fn)),
        ("empty", torch.empty(0, 3)),
    ])
    state = {0: {"step": torch.tensor(3.0), "exp_avg": ramp(12, 5).reshape(3, 4),
                 "exp_avg_sq": ramp(12, 50).reshape(3, 4)}}
    return {"model": model, "optimizer": {"state": state, "param_groups": [{"lr": 1e-3, "params": [0]}]},
            "epoch": 3, "args": argparse.Namespace(lr=1e-3), "class": torch.nn.Linear,
            "sparse": torch.eye(2).to_sparse()}


folder = pathlib.Path(sys.argv[1])
torch.save(checkpoint(), folder / "adam.pt")
torch.save(checkpoint(), folder / "adam.pth", _use_new_zipfile_serialization=False)
