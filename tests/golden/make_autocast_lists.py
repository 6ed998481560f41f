# Writes what Apex's own lists say of each function: python3 make_autocast_lists.py APEX_AMP_FOLDER OUT
#
# Runs apex/amp/lists/torch_overrides.py and functional_overrides.py as they are, with stand-ins for
# what they import (a recent torch and CUDA).
import os
import sys
import types


def stand_ins():
    functional = types.ModuleType("torch.nn.functional")
    nn = types.ModuleType("torch.nn")
    nn.functional = functional
    torch = types.ModuleType("torch")
    torch.nn, torch.__version__ = nn, "2.9.0"
    amp = types.ModuleType("amp")
    amp.__path__ = []
    amp.utils = types.SimpleNamespace(is_cuda_enabled=lambda: True,
                                      get_cuda_version=lambda: (12, 9, 0))
    lists = types.ModuleType("amp.lists")
    lists.__path__ = []
    sys.modules.update({"torch": torch, "torch.nn": nn, "torch.nn.functional": functional,
                        "amp": amp, "amp.lists": lists, "amp.utils": amp.utils})


def run(path):
    module = types.ModuleType("amp.lists.one")
    module.__package__ = "amp.lists"
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"), vars(module))
    return module


def main():
    folder, out = sys.argv[1:]
    stand_ins()
    rules = {}
    for name in ("torch_overrides", "functional_overrides"):
        module = run(os.path.join(folder, "lists", name + ".py"))
        for rule, key in [("low_precision", "FP16_FUNCS"), ("fp32", "FP32_FUNCS"),
                          ("widest", "CASTS"), ("widest", "SEQUENCE_CASTS")]:
            for function in getattr(module, key, []):
                assert rules.setdefault(function, rule) == rule, function
        for function, _ in getattr(module, "BANNED_FUNCS", []):
            rules[function] = "banned"
    with open(out, "w", encoding="utf-8") as file:
        for function in sorted(rules):
            file.write(f"{function} {rules[function]}\n")


if __name__ == "__main__":
    main()
