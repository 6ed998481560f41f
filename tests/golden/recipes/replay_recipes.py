"""Codes and scales of other libraries, as their own code computed them, against the recipes here."""
import functools
import pathlib

import numpy as np
import pytest

import recordings
import samebits as sb

HERE = pathlib.Path(__file__).parent
SAMPLE = HERE.parents[1] / "data" / "gpt_sample.safetensors"


def presets_in(folder):
    return sorted(path.stem for path in folder.glob("*.txt"))


@functools.lru_cache(maxsize=40)  # presets of one tile are recorded on the same matrices
def input_of(case):
    bits = recordings.input_bits(case, SAMPLE)
    return bits, recordings.digest(bits)


def steps(bits, case, preset):
    """The rows are the tensor at successive steps of delayed scaling."""
    choice = "most_recent" if case.mode == "steps/recent" else "maximum"
    state = sb.DelayedScaling(recordings.HISTORY, choice=choice)
    for row in bits:
        q = sb.quantize(row[None], preset, format=case.format, inverse_scales=state.inverse_scales,
                        statistics=True)
        state.observe(q.statistics.amax)
        state.update()
        yield q


def results_of(case, hashes, preset):
    """Codes and scales as bytes, [rows, cols] and one row of them for each row of scales."""
    bits, digest = input_of(case)
    assert digest == hashes[0], "not the same input as when it was recorded"
    if case.mode == "whole":
        parts = [sb.quantize(bits, preset, format=case.format)]
    elif case.mode == "rows":
        parts = [sb.quantize(row[None], preset, format=case.format) for row in bits]
    else:
        parts = list(steps(bits, case, preset))
    return (np.concatenate([np.ascontiguousarray(x).view(np.uint8) for x in all])
            for all in ([q.codes for q in parts], [q.scales for q in parts]))


@pytest.mark.parametrize("preset", presets_in(HERE))
def test_finite_elements(preset):
    named, cases = recordings.read(HERE / f"{preset}.txt")
    assert named == preset
    for case, hashes, rows in cases:
        codes, scales = results_of(case, hashes, preset)
        if rows:
            expected = recordings.listed(rows)
            assert codes.tobytes() == expected[0] and scales.tobytes() == expected[1], case
        assert recordings.digest(codes) == hashes[1], case
        assert recordings.digest(scales) == hashes[2], case
    assert sum(case.rows * case.cols for case, _, _ in cases) >= 10_000_000


def is_nan_scale(scales):
    """Of tiles, from the bytes of their scales."""
    if scales.shape[1] != 4:
        return np.zeros(len(scales), bool)
    return np.isnan(np.ascontiguousarray(scales).view(np.float32))[:, 0]


@pytest.mark.parametrize("preset", presets_in(HERE / "nonfinite"))
def test_tiles_with_nan_and_inf(preset):
    """Element by element, except what `exceptions` leaves out of the preset's claim."""
    named, cases = recordings.read(HERE / "nonfinite" / f"{preset}.txt")
    assert named == preset
    exceptions = sb.recipes[preset].exceptions
    compared = scales_compared = 0
    for case, hashes, rows in cases:
        ours, own_scales = results_of(case, hashes, preset)
        codes, scales = (np.frombuffer(x, np.uint8) for x in recordings.listed(rows))
        assert codes.size == ours.size and scales.size == own_scales.size, case
        width = sb.recipes[preset].tile[1] or case.cols
        ours, codes = ours.reshape(-1, width), codes.reshape(-1, width)
        own_scales, scales = (x.reshape(len(codes), -1) for x in (own_scales, scales))

        both_nan = (ours & codes & 0x7F) == 0x7F
        claimed = np.ones(len(codes), bool)  # scales of tiles
        if "a tile of NaN" in exceptions:
            claimed &= ~both_nan.all(axis=1)
        if "the bits of a NaN scale" in exceptions:
            claimed &= ~(is_nan_scale(own_scales) & is_nan_scale(scales))
        assert np.array_equal(own_scales[claimed], scales[claimed]), case
        scales_compared += np.count_nonzero(claimed)

        claimed = np.ones(codes.shape, bool)  # codes
        if "codes of a tile whose byte is FF" in exceptions and scales.shape[1] == 1:
            claimed &= scales != 0xFF
        if "the sign of NaN codes" in exceptions:
            claimed &= ~both_nan
        assert np.array_equal(ours[claimed], codes[claimed]), case
        compared += np.count_nonzero(claimed)
    assert compared > 1000
    assert scales_compared >= 20


@pytest.mark.parametrize("folder, evidence", [(HERE, "evidence"),
                                              (HERE / "nonfinite", "evidence_nonfinite")])
def test_every_verified_preset_has_a_recording(folder, evidence):
    verified = [name for name, r in sb.recipes.items() if getattr(r, evidence) == "library output"]
    assert sorted(verified) == presets_in(folder)
