#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets under corpus/. Same files every time; no packages needed.

Files whose names begin with "crash" were found by fuzzing and are kept; all others are rewritten.
"""

import argparse
import json
import pathlib
import pickle
import struct
import sys
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
import torch_files  # noqa: E402


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


def stored_block(data, last=1):
    """A deflate block without compression, the same with every version of zlib."""
    return struct.pack("<BHH", last, len(data), len(data) ^ 0xFFFF) + data


# 64 zero bytes in a block of fixed Huffman codes, as zlib 1.2.13 compresses them.
ZEROS_PACKED = bytes.fromhex("6360a00c0000")


def zip_member(name, data, packed=None, method=None, crc=None, extra=b"", flags=0):
    """(name, local header and data, the start of the directory entry)"""
    method = (0 if packed is None else 8) if method is None else method
    packed = data if packed is None else packed
    crc = zlib.crc32(data) if crc is None else crc
    fields = struct.pack("<HHHHHIII", 20, flags, method, 0, 33, crc, len(packed), len(data))
    local = b"PK\3\4" + fields + struct.pack("<HH", len(name), len(extra)) + name + extra + packed
    return name, local, b"PK\1\2" + struct.pack("<H", 20) + fields


def zip_entry(member, offset, extra=b""):
    name, _, start = member
    return start + struct.pack("<HHHHHII", len(name), len(extra), 0, 0, 0, 0, offset) + name + extra


def zip_end(entries, size, offset, comment=b""):
    return b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, entries, entries, size, offset,
                                   len(comment)) + comment


def zip_file(*members, comment=b""):
    data, directory = b"", b""
    for member in members:
        directory += zip_entry(member, len(data))
        data += member[1]
    return data + directory + zip_end(len(members), len(directory), len(data), comment)


def npz_seeds():
    small = npy(padded(npy_dict("<f2", (4,))), ramp(8))
    fortran = npy(padded(npy_dict(">f4", (2, 3), True)), ramp(24))
    zeros = npy(padded(npy_dict("<f4", (16,)))) + bytes(64)
    plain = zip_member(b"a.npy", small)
    packed = zip_member(b"b.npy", fortran, stored_block(fortran))
    yield "stored", zip_file(plain)
    yield "deflated", zip_file(packed)
    yield "both", zip_file(plain, packed, comment=b"a comment")
    yield "empty", zip_file()
    yield "zip64_local", zip_file(zip_member(b"a.npy", small, extra=struct.pack("<HHQQ", 1, 16, 0, 0)))
    yield "crc", zip_file(zip_member(b"a.npy", small, stored_block(small), crc=1))
    yield "object", zip_file(zip_member(b"o.npy", npy(npy_dict("|O", (1,)) + "\n", b"x")), plain)
    yield "other_file", zip_file(zip_member(b"readme.txt", b"text"), plain)
    yield "encrypted", zip_file(zip_member(b"a.npy", small, flags=1))
    yield "method", zip_file(zip_member(b"a.npy", small, small, method=14))
    yield "large", zip_file(zip_member(b"z.npy", zeros, stored_block(zeros[:-64], 0) + ZEROS_PACKED))
    name, local, start = zip_member(b"a.npy", small)
    sizes = struct.pack("<HHQQ", 1, 16, len(small), len(small))
    entry = zip_entry((name, local, start[:18 + 2] + b"\xff" * 8), 0, sizes)
    end64 = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, len(entry), len(local))
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, len(local) + len(entry), 1)
    yield "zip64", local + entry + end64 + locator + zip_end(0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
    overlap = plain[1] + zip_entry(plain, 0) + zip_entry((b"b.npy", b"", plain[2]), 0)
    yield "refused_overlap", overlap + zip_end(2, len(overlap) - len(plain[1]), len(plain[1]))
    yield "refused_twice", zip_file(plain, plain)
    yield "refused_member", zip_file(zip_member(b"a.npy", b"no array"))
    yield "refused_cut", zip_file(zip_member(b"a.npy", small, stored_block(small)[:20]))
    yield "refused_claim", zip_file(zip_member(b"a.npy", small * 20, b"\x03\x00"))
    yield "refused_prefix", b"x" + zip_file(plain)
    yield "refused_end", zip_file(plain)[:-1]
    yield "refused_nothing", b""


def gguf_text(text):
    return struct.pack("<Q", len(text)) + text


def gguf_tensor(name, kind, shape, offset):
    return (gguf_text(name) + struct.pack("<I", len(shape)) +
            b"".join(struct.pack("<Q", extent) for extent in shape) +
            struct.pack("<IQ", kind, offset))


def gguf(infos=(), data=b"", pairs=(), version=3, tensors=None, alignment=32):
    start = b"GGUF" + struct.pack("<IQQ", version, len(infos) if tensors is None else tensors,
                                  len(pairs)) + b"".join(pairs) + b"".join(infos)
    return start + bytes(-len(start) % alignment) + data


def gguf_seeds():
    one = gguf_tensor(b"w", 0, (2, 2), 0)
    for kind, size in {0: 4, 1: 2, 30: 2, 28: 8, 24: 1, 25: 2, 26: 4, 27: 8, 12: 9, 4711: 1}.items():
        yield f"type_{kind}", gguf([gguf_tensor(b"t", kind, (4, 2), 0)], ramp(8 * size))
    for kind, size in {2: 18, 8: 34}.items():
        yield f"type_{kind}", gguf([gguf_tensor(b"t", kind, (64, 2), 0)], ramp(4 * size))
        yield f"refused_rows_{kind}", gguf([gguf_tensor(b"t", kind, (16, 4), 0)], ramp(2 * size))
    yield "version_2", gguf([one], ramp(16), version=2)
    yield "none", gguf()
    yield "two", gguf([gguf_tensor(b"b", 24, (3,), 32), one], ramp(35))
    yield "scalar", gguf([gguf_tensor(b"s", 0, (), 0)], ramp(4))
    yield "no_elements", gguf([gguf_tensor(b"s", 0, (0, 3), 0)])
    values = [gguf_text(b"a.b") + struct.pack("<I", kind) + bytes(size)
              for kind, size in enumerate((1, 1, 2, 2, 4, 4, 4, 1)) if size]
    values += [gguf_text(b"k") + struct.pack("<I", kind) + bytes(8) for kind in (10, 11, 12)]
    yield "scalars", gguf([one], ramp(16), values)
    array = struct.pack("<IIQ", 9, 8, 2) + gguf_text(b"x") + gguf_text(b"")
    nested = struct.pack("<IIQ", 9, 9, 1) + struct.pack("<IQ", 0, 2) + b"zz"
    yield "arrays", gguf([one], ramp(16), [gguf_text(b"s") + struct.pack("<I", 8) + gguf_text(b"v"),
                                           gguf_text(b"a") + array, gguf_text(b"n") + nested])
    align = gguf_text(b"general.alignment") + struct.pack("<II", 4, 8)
    yield "alignment", gguf([gguf_tensor(b"t", 24, (3,), 8), gguf_tensor(b"u", 24, (3,), 0)],
                            ramp(11), [align], alignment=8)
    yield "refused_alignment", gguf([one], ramp(16), [align[:-4] + bytes(4)])
    yield "refused_version", gguf(version=1)
    yield "refused_big_endian", b"GGUF" + struct.pack(">IQQ", 3, 0, 0)
    yield "refused_twice", gguf([one, one], ramp(16))
    yield "refused_overlap", gguf([gguf_tensor(b"a", 24, (33,), 0), gguf_tensor(b"b", 24, (1,), 32)],
                                  ramp(40))
    yield "refused_short", gguf([one], ramp(15))
    yield "refused_count", gguf([one], ramp(16), tensors=2)
    yield "refused_counts", gguf(tensors=1 << 63)
    yield "refused_offset", gguf([gguf_tensor(b"w", 0, (2, 2), 4)], ramp(20))
    yield "refused_product", gguf([gguf_tensor(b"w", 0, (1 << 32, 1 << 32), 0)], ramp(16))
    yield "refused_name", gguf([gguf_tensor(b"\xff", 0, (1,), 0)], ramp(4))
    yield "refused_array", gguf(pairs=[gguf_text(b"a") + struct.pack("<IIQ", 9, 12, 1 << 61)])
    yield "refused_nothing", b""


def torch_zip(data, storages=(), *members):
    """Without CRC-32, so that a changed pickle is read."""
    parts = [(b"m/data.pkl", data), *((b"m/data/%d" % i, raw) for i, raw in enumerate(storages)), *members]
    return zip_file(*(zip_member(name, content, crc=0) for name, content in parts))


def torch_old(data, storages=()):
    start = b"".join(pickle.dumps(part, 2) for part in torch_files.OLD_START)
    keys = pickle.dumps([str(i) for i in range(len(storages))], 2)
    return start + data + keys + b"".join(struct.pack("<q", one.elements) + one.raw for one in storages)


def torch_seeds():
    of = torch_files.stand_in
    raw = torch_files.Storage("FloatStorage", ramp(24), 4)
    tensor = torch_files.Tensor(raw, 0, (2, 3), (3, 1))
    untyped = torch_files.Storage("UntypedStorage", ramp(4), 1)
    models = {
        "state_dict": {"w": tensor, "b": torch_files.contiguous("BFloat16Storage", 2, (3,), ramp(6))},
        "views": [tensor, torch_files.Tensor(raw, 0, (3, 2), (1, 3)),
                  (torch_files.Tensor(raw, 5, (2, 2), (0, 0)), torch_files.Tensor(raw, 1, (), ()))],
        "empty": torch_files.contiguous("DoubleStorage", 8, (0, 3), b""),
        "values": {"n": 1 << 70, "m": -5, "x": 0.5, "none": None, True: [b"b", "t", (), {}], 3: {1, 2}},
        "inert": {"args": argparse.Namespace(a=1), "type": argparse.ArgumentParser, "w": tensor},
        "parameter": torch_files.Call(of("torch._utils", "_rebuild_parameter"), tensor, True, {}),
        "float8": torch_files.Call(of("torch._utils", "_rebuild_tensor_v3"), untyped, 0, (4,), (1,), False,
                                   {}, of("torch", "float8_e4m3fn")),
        "sparse": torch_files.Call(of("torch._utils", "_rebuild_sparse_tensor"), 1, (tensor, tensor)),
        "refused_call": torch_files.Call(of("os.path", "system"), "true"),
        "refused_size": torch_files.Tensor(raw, 0, (7,), (1,)),
    }
    for name, model in models.items():
        for protocol in 2, 4:
            data, storages = torch_files.pickled(model, protocol)
            yield f"{name}_{protocol}", torch_zip(data, [one.raw for one in storages])
            data, storages = torch_files.pickled(model, protocol, (None,))
            yield f"{name}_{protocol}_old", torch_old(data, storages)
    data, storages = torch_files.pickled(models["state_dict"])
    yield "big_endian", torch_zip(data, [one.raw for one in storages], (b"m/byteorder", b"big"))
    yield "deflated", zip_file(zip_member(b"m/data.pkl", data, stored_block(data)),
                               *(zip_member(b"m/data/%d" % i, one.raw, stored_block(one.raw))
                                 for i, one in enumerate(storages)))
    yield "refused_script", torch_zip(data, [], (b"m/constants.pkl", b""))
    yield "refused_storage", torch_zip(data)
    yield "refused_depth", torch_old(b"\x80\x02" + b"]" * 200 + b"a" * 199 + b".")
    yield "refused_self", torch_old(b"\x80\x02]q\x01h\x01a.")
    yield "refused_nothing", b""


def shard_index_seeds():
    texts = {
        "two": {"metadata": {"total_size": 32}, "weight_map": {"a": "1.s", "b": "2.s", "c": "1.s"}},
        "empty": {"weight_map": {}},
        "other": {"x": [1, -1, 1.5, None, True, {"weight_map": {"y": []}}], "weight_map": {"a": "f"}},
        "refused_slash": {"weight_map": {"a": "../f"}},
        "refused_zero": {"weight_map": {"a": "f\0"}},
        "refused_dots": {"weight_map": {"a": ".."}},
        "refused_nothing": {"weight_map": {"a": ""}},
        "refused_number": {"weight_map": {"a": 1}},
        "refused_nested": {"weight_map": {"a": {"b": "f"}}},
        "refused_map": {"weight_map": "f"},
        "refused_no_map": {"metadata": {}},
    }
    for name, value in texts.items():
        yield name, compact(value).encode("utf-8")
    yield "refused_key_twice", b'{"weight_map":{"a":"f","a":"g"}}'
    yield "refused_twice", b'{"weight_map":{},"weight_map":{}}'
    yield "refused_array", b"[]"
    yield "refused_open", b'{"weight_map":{"a":"f"}'
    yield "refused_deep", b'{"x":' + b"[" * 100 + b"]" * 100 + b"}"


def command_line_seeds():
    lines = {
        "show": "show e4m3 0.1 --rounding toward_zero --json",
        "show_several": "show fp16,bf16,e5m2 1e-400 nan -0 0x1.8p-3 --plain --ascii",
        "arith": "arith div 1 3 --format bf16 --rounding stochastic --seed 5 --random-bits 12",
        "arith_fma": "arith fma 1e38 10 -inf --overflow saturate --nan canonical",
        "arith_rule": "arith exp 0.5 --rule cuda_13_0",
        "cast": "cast fp32 e4m3 448 449 -1e9 --overflow saturate",
        "range": "range --width 60",
        "resolution": "resolution fp16 1 2 --json --json-bits",
        "table": "table e5m2 add",
        "memory": "memory 1.3B --scheme master32",
        "advise": "advise training --gpu h100",
        "completion": "completion fish",
        "formats": "formats e4m3 --json",
        "units": "units",
        "refused_number": "show e4m3 1e",
        "refused_utf8": "show e4m3 \u00e9\u4e2d",
        "refused_option": "range --colour always --nothing",
    }
    for name, line in lines.items():
        yield name, line.replace(" ", "\n").encode("utf-8")
    yield "refused_bytes", b"show\n\xff\xfe\x1b[0m"


def write(folder, seeds):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if not old.name.startswith("crash"):
            old.unlink()
    for name, content in seeds:
        assert len(content) < 4096, name
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    for reader in ("npy", "npz", "safetensors", "shard_index", "gguf", "torch", "command_line"):
        write(HERE / "corpus" / reader, globals()[reader + "_seeds"]())
