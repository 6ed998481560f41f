#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets under corpus/. Same files every time; no packages needed.

Files whose names begin with "crash" were found by fuzzing and are kept; all others are rewritten.
"""

import json
import pathlib
import struct

HERE = pathlib.Path(__file__).resolve().parent


def ramp(size):
    """Data bytes that differ from their neighbours."""
    return bytes((37 * i + 11) % 256 for i in range(size))


def npy(header, data=b"", version=1, minor=0):
    text = header.encode("utf-8") if isinstance(header, str) else header
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, minor]) + length + text + data


def npy_dict(descr, shape, order=False):
    return f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}"


def padded(text, version=1):
    """Spaces and a line feed up to a multiple of 64 bytes, as NumPy writes them."""
    prefix = 10 if version == 1 else 12
    return text + " " * (-(prefix + len(text) + 1) % 64) + "\n"


def npy_seeds():
    types = ["|b1", "|u1", "|i1"] + [
        mark + code
        for code in ("i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16")
        for mark in "<>"
    ]
    for descr in types:
        size = int(descr[2:])
        name = descr.replace("|", "").replace("<", "little_").replace(">", "big_")
        yield f"type_{name}", npy(padded(npy_dict(descr, (2, 3))), ramp(6 * size))
        if size in (1, 2, 8):
            text = padded(npy_dict(descr, (2, 3, 2), True))
            yield f"fortran_{name}", npy(text, ramp(12 * size))
    for version in (1, 2, 3):
        text = padded(npy_dict("<u2", (3,)), version)
        yield f"version_{version}", npy(text, ramp(6), version)
    shapes = {"rank_0": (), "empty": (0,), "empty_3": (0, 3), "rank_8": (1, 2, 1, 2, 1, 1, 2, 1)}
    for name, shape in shapes.items():
        count = 1
        for extent in shape:
            count *= extent
        yield f"shape_{name}", npy(padded(npy_dict("<f2", shape)), ramp(2 * count))
    good = npy_dict("<u2", (3,))
    spelled = {
        "other_order": '{"shape":(3,),"fortran_order":False,"descr":"<u2"}\n',
        "python2": "{'descr': '<u2', 'fortran_order': False, 'shape': (1L, 3L)}\n",
        "spaces": " { 'descr' : '<u2' ,\n'fortran_order' : False ,\t'shape' : ( 3 , ) }  \n",
    }
    for name, text in spelled.items():
        yield f"spelling_{name}", npy(text, ramp(6))
    refused = {
        "structured": "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }\n",
        "object": npy_dict("|O", (1,)) + "\n",
        "void": npy_dict("<V2", (1,)) + "\n",
        "text": npy_dict("<U2", (1,)) + "\n",
        "no_order": npy_dict("=f4", (1,)) + "\n",
        "no_line_feed": good,
        "not_a_tuple": npy_dict("<u2", "(3)") + "\n",
        "negative": npy_dict("<u2", "(-3,)") + "\n",
        "leading_zero": npy_dict("<u2", "(03,)") + "\n",
        "overflow": npy_dict("<u2", "(4294967296, 4294967296)") + "\n",
        "bits_overflow": npy_dict("<u2", "(1152921504606846976,)") + "\n",
        "too_large": npy_dict("<u2", "(18446744073709551616,)") + "\n",
        "twice": good[:-1] + "'shape': (3,)}\n",
        "unknown_key": good[:-1] + "'order': 'C'}\n",
        "missing_key": "{'descr': '<u2', 'shape': (3,)}\n",
        "escape": "{'de\\163cr': '<u2'}\n",
        "tail": good + " x\n",
        "not_ascii": b"{'descr': '<u2', '\xe9': 1}\n",
        "expression": "{'descr': '<u2', 'fortran_order': False, 'shape': (1+2,)}\n",
        "zero_byte": good + "\0\n",
    }
    for name, text in refused.items():
        yield f"refused_{name}", npy(text, ramp(6))
    whole = npy(padded(good), ramp(6))
    yield "refused_short", whole[:-1]
    yield "refused_long", whole + b"x"
    yield "refused_version_4", npy(padded(good), ramp(6), 4)
    yield "refused_version_1_1", npy(padded(good), ramp(6), 1, 1)
    yield "refused_length", whole[:8] + b"\xff\xff" + whole[10:]
    yield "refused_magic", b"\x93NUMPX" + whole[6:]
    yield "refused_empty", b""


SAFETENSORS_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "I16": 16, "U16": 16, "I32": 32, "U32": 32, "I64": 64, "U64": 64,
    "F16": 16, "BF16": 16, "F32": 32, "F64": 64, "C64": 64, "F8_E5M2": 8, "F8_E4M3": 8,
    "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip


def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else header.encode("utf-8")
    return struct.pack("<Q", len(text)) + text + data


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def safetensors_seeds():
    everything = {}
    end = 0
    for dtype, bits in SAFETENSORS_BITS.items():
        yield f"type_{dtype}", safetensors(compact({"t": tensor(dtype, [2, 4], 0, bits)}), ramp(bits))
        everything[f"layer.{dtype}"] = tensor(dtype, [4], end, end + bits // 2)
        end += bits // 2
    everything["__metadata__"] = {"format": "pt", "é": "ü\n"}
    text = compact(everything)
    yield "all_types", safetensors(text + " " * (-len(text) % 8), ramp(end))
    pair = {"b": tensor("F16", [2], 4, 8), "a": tensor("U8", [4], 0, 4)}
    hollow = {"h": tensor("I64", [0, 3], 4, 4)}
    accepted = {
        "none": ("{}", 0),
        "metadata_only": ('{"__metadata__":{}}', 0),
        "unsorted": (compact(pair), 8),
        "empty_tensor": (compact({**pair, **hollow}), 8),
        "rank_0": (compact({"t": tensor("F32", [], 0, 4)}), 4),
        "spaces": ('{ "t":\t{"dtype" : "U8",\n"shape" : [ 2 ] , "data_offsets":[0, 2]} }  ', 2),
        "escapes": ('{"\\u00e9\\ud83d\\ude00\\u0000":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}', 1),
        "field_order": ('{"t":{"data_offsets":[0,2],"shape":[2],"dtype":"U8"}}', 2),
    }
    for name, (text, size) in accepted.items():
        yield name, safetensors(text, ramp(size))
    good = compact({"t": tensor("U8", [4], 0, 4)})
    inner = good[5:-1]
    refused = {
        "bom": b"\xef\xbb\xbf" + good.encode(),
        "space_first": " " + good,
        "not_utf8": b'{"\xff":1}',
        "surrogate": '{"\\ud800":1}',
        "zero_byte": good + "\0}",
        "line_feed": good + "\n",
        "two_objects": good + "{}",
        "open": good[:-1],
        "comma": good[:-1] + ",}",
        "twice": f'{{"t":{inner},"\\u0074":{inner}}}',
        "field_twice": good[:-2] + ',"dtype":"U8"}}',
        "unknown_field": good[:-2] + ',"strides":[1]}}',
        "missing_field": '{"t":{"dtype":"U8","shape":[4]}}',
        "metadata_number": '{"__metadata__":{"a":1}}',
        "metadata_twice": '{"__metadata__":{"a":"1","a":"1"}}',
        "dtype": good.replace("U8", "F128"),
        "float": good.replace("[4]", "[4.0]"),
        "minus_zero": good.replace("[0,4]", "[-0,4]"),
        "too_large": good.replace("[4]", "[18446744073709551616]"),
        "product": good.replace("[4]", "[4294967296,4294967296,0]"),
        "bits": good.replace("U8", "F64").replace("[4]", "[288230376151711744]"),
        "packed": good.replace("U8", "F4").replace("[4]", "[7]"),
        "backwards": good.replace("[0,4]", "[4,0]"),
        "size": good.replace("[0,4]", "[0,3]"),
        "hole": compact({"a": tensor("U8", [1], 0, 1), "b": tensor("U8", [2], 2, 4)}),
        "overlap": compact({"a": tensor("U8", [3], 0, 3), "b": tensor("U8", [2], 2, 4)}),
        "rest": good.replace("4", "3"),
        "nested": '{"a":' * 200 + "1" + "}" * 200,
        "array": "[" + good + "]",
    }
    for name, text in refused.items():
        yield f"refused_{name}", safetensors(text, ramp(4))
    whole = safetensors(good, ramp(4))
    yield "refused_short", whole[:7]
    yield "refused_length", struct.pack("<Q", 1 << 63) + whole[8:]
    yield "refused_limit", struct.pack("<Q", 100_000_001) + whole[8:]
    yield "refused_beyond", struct.pack("<Q", len(whole)) + whole[8:]


def write(folder, seeds):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if not old.name.startswith("crash"):
            old.unlink()
    for name, content in seeds:
        assert len(content) < 4096, name
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    write(HERE / "corpus" / "npy", npy_seeds())
    write(HERE / "corpus" / "safetensors", safetensors_seeds())
