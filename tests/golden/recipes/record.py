# Records what other libraries' own quantizers do, for golden.recipes to replay.
#
#   python3 record.py PRESET SOURCE [--device cuda] [--note TEXT] [--nonfinite] --out PRESET.txt
#
# With --nonfinite, matrices with NaN and Inf, for the folder nonfinite.
#
# SOURCE is a checkout of the library; or, for presets whose library is kernels, FILE.so[:SYMBOL], a
# shared library built around those kernels outside this project (libraries.py says what it
# exports); of TE_BLOCK_* a checkout runs the Python reference. MSAMP takes CHECKOUT,FILE.so.
# DSV3_IEEE wants TRITON_INTERPRET=1 and --device cpu. ../README.md says what was recorded.
import argparse
import os

import torch

import libraries
import recordings

ALL = ("fp32", "bf16", "fp16")
ROW = (1, 128)
TENSOR = (0, 0)
# preset: tile, formats, modes, whether tails are taken, the call
PRESETS = {
    "TE_BLOCK_1D": (ROW, ALL, ("whole",), True, "program"),
    "TE_BLOCK_2D": ((128, 128), ALL, ("whole",), True, "program"),
    "TE_CURRENT": (TENSOR, ALL, ("rows",), True, "program"),
    "TE_DELAYED": (TENSOR, ALL, ("steps/max", "steps/recent"), False, "program"),
    "DEEPGEMM_UE8M0": (ROW, ALL, ("whole",), True,
                       lambda path, device: libraries.deep_gemm(path, device, True)),
    "DEEPGEMM_FP32_CUDA": (ROW, ALL, ("whole",), True,
                           lambda path, device: libraries.deep_gemm(path, device, False)),
    "DEEPGEMM_FP32_CPU": (ROW, ALL, ("whole",), True,
                          lambda path, device: libraries.deep_gemm(path, device, False)),
    "DSV3_IEEE": (ROW, ALL, ("whole",), False, libraries.deepseek),
    "VLLM_GROUP": (ROW, ALL, ("whole",), False, "program"),
    "TORCHAO_BLOCK": (ROW, ALL, ("whole",), False, libraries.torchao_block),
    "TORCHAO_ROW": ((1, 0), ALL, ("whole",), True, libraries.torchao_row),
    "FBGEMM_ROW": ((1, 0), ("bf16",), ("whole",), True, "program"),
    "MSAMP": (TENSOR, ALL, ("rows",), True, libraries.msamp),
    "MXFP8_TE": ((1, 32), ALL, ("whole",), True, "program"),
    "MXFP8_TORCHAO": ((1, 32), ("fp32", "bf16"), ("whole",), False,
                      lambda path, device: libraries.torchao_mx(path, device, "RCEIL")),
    "MXFP8_FLOOR": ((1, 32), ("fp32", "bf16"), ("whole",), False,
                    lambda path, device: libraries.torchao_mx(path, device, "FLOOR")),
}
MX_MODES = {"MXFP8_CEIL": "float8_e4m3fn",
            "MXFP6_E2M3_FLOOR": "fp6_e2m3", "MXFP6_E3M2_FLOOR": "fp6_e3m2",
            **{f"MXFP4_{mode}": "float4_e2m1fn_x2" for mode in ("FLOOR", "CEIL", "RCEIL")}}
for NAME, TO in MX_MODES.items():
    PRESETS[NAME] = ((1, 32), ("fp32", "bf16"), ("whole",), False,
                     lambda path, device, mode=NAME.rsplit("_", 1)[1], to=TO:
                     libraries.torchao_mx(path, device, mode, to))
PRESETS["NVFP4_TORCHAO"] = ((1, 16), ("fp32", "bf16"), ("whole",), False, libraries.torchao_nvfp4)
CLEARED = {"TORCHAO_ROW": ":near", "MSAMP": ":near+inf"}
SAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "../../data/gpt_sample.safetensors")


def call_of(preset, source, device):
    """The call, and the files that ran."""
    tile, _, _, _, make = PRESETS[preset]
    if make == "program":
        if preset.startswith("TE_BLOCK") and os.path.isdir(source):
            return libraries.transformer_engine_blocks(source, device, tile)
        path, _, symbol = source.partition(":")
        return libraries.program(path, tile, symbol or "record", device)
    return make(source, device)


def cases_of(preset, nonfinite=False, sample=SAMPLE):
    tile, formats, modes, tails, _ = PRESETS[preset]
    if nonfinite:
        return recordings.nonfinite_cases(formats, (tile[0] or 1, tile[1]), modes[0])
    # A row or a tensor is made as one tile.
    return recordings.cases(formats, (tile[0] or 1, tile[1]), modes, sample, tails,
                            CLEARED.get(preset, ""))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("preset", choices=PRESETS)
    parser.add_argument("source")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--note", default="", help="library, commit, what else decides the bits")
    parser.add_argument("--files", nargs="*", default=[],
                        help="the sources that a shared library was built around")
    parser.add_argument("--nonfinite", action="store_true")
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    call, paths = call_of(arguments.preset, arguments.source, arguments.device)
    recording = recordings.Recording(
        arguments.out, heading(arguments.preset, arguments.note, arguments.files + paths,
                               arguments.device + " --nonfinite" * arguments.nonfinite))
    for case in cases_of(arguments.preset, arguments.nonfinite):
        bits = recordings.input_bits(case, SAMPLE)
        recording.add(case, bits, *call(bits, case.format, case.mode))
    recording.close()


def heading(preset, note, paths, device):
    ran = {"preset": preset, "library": note}
    for path in paths:
        if not path.endswith(".so"):
            ran[os.path.basename(path)] = "sha256 " + libraries.sha256_of(path)
    ran["torch"] = torch.__version__
    on_gpu = device.startswith("cuda")
    ran["device"] = torch.cuda.get_device_name() if on_gpu else "cpu"
    ran["made by"] = f"record.py {preset} SOURCE --device {device}"
    return ran


if __name__ == "__main__":
    main()
