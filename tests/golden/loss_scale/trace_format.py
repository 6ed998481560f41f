# Golden traces of loss scalers: which runs are recorded, and the file they are recorded in.
#
# A file, little endian:
#   b"samebits loss scales 1\n"
#   uint32 length, that many bytes of JSON: where it comes from, "settings": names in order,
#     "traces", "steps"
#   per trace: the settings as float64; ceil(steps / 8) bytes, bit i = gradients of step i were not
#     finite; 2 bits per step, what the update after it did to the scale (0 kept, 1 raised,
#     2 lowered); uint16 step at which the library raised an exception, else 0xFFFF; float64 scale
#     after the last step; uint64 FNV-1a over the float64 scale in force at every step, then the
#     library's counters as int64, in the order of its state
# The steps after an exception are recorded as kept.
import hashlib
import json
import random
import struct

MAGIC = b"samebits loss scales 1\n"
TRACES = 1000
STEPS = 200
NOT_RAISED = 0xFFFF

# Per setting: the library's default and what else it is tried with.
SCALES = [2.0**16, 2.0**32, 2.0**-10, 2.0**120, 50000.0, 1.0, 3.3, 1e-30, 1e30, 2.0**-126]
GROWTH = [2.0, 4.0, 1.5, 1.1, 1.0009765625, 3.7, 1e10]
BACKOFF = [0.5, 0.25, 0.9, 0.1, 1 / 3, 0.7071067811865476, 1e-10]
INTERVAL = [1, 2, 3, 5, 10, 25, 50, 199, 200, 2000]
HYSTERESIS = [1, 2, 3, 5, 20]
FLOORS = [1.0, 0.25, 2.0**-20, 3.0, 1e-30, 1000.0]

SETTINGS = {
    "torch": {"init_scale": SCALES, "growth_factor": GROWTH, "backoff_factor": BACKOFF,
              "growth_interval": INTERVAL},
    "apex": {"init_scale": SCALES, "growth_factor": GROWTH + [1.0], "backoff_factor": BACKOFF,
             "growth_interval": INTERVAL, "hysteresis": HYSTERESIS},
    "apex_amp": {"init_scale": SCALES, "scale_window": INTERVAL, "min_loss_scale": [0.0] + FLOORS,
                 "max_loss_scale": [2.0**24, 2.0**30, 5e4, 1e6]},
    "megatron": {"initial_scale": SCALES, "min_scale": FLOORS, "growth_factor": GROWTH,
                 "backoff_factor": BACKOFF, "growth_interval": INTERVAL,
                 "hysteresis": HYSTERESIS},
    "deepspeed": {"init_scale": SCALES, "scale_factor": [2.0, 4.0, 1.5, 1.1, 3.0],
                  "scale_window": INTERVAL, "min_scale": FLOORS, "delayed_shift": HYSTERESIS,
                  "consecutive_hysteresis": [0, 1], "raise_error_at_min_scale": [1, 0]},
}


def is_permitted(settings):
    """What the library's constructor asserts."""
    if "initial_scale" in settings:
        return settings["min_scale"] <= settings["initial_scale"]
    return True


def random_settings(policy, generator):
    while True:
        settings = {name: generator.choice(values) for name, values in SETTINGS[policy].items()}
        if is_permitted(settings):
            return settings


def random_verdict(generator):
    """A function of (step, scale): whether the gradients of the step are not finite."""
    kind = generator.choice(["rate", "bursts", "period", "edge", "edge and rate", "none", "all"])
    rate = generator.choice([0.001, 0.01, 0.05, 0.2, 0.5, 0.9])
    period = generator.randint(1, 60)
    burst = generator.randint(1, 30)
    edge = 2.0**generator.randint(-20, 40)
    if kind == "rate":
        return lambda step, scale: generator.random() < rate
    if kind == "bursts":
        return lambda step, scale: (step // burst) % 3 == 1
    if kind == "period":
        return lambda step, scale: step % period == period - 1
    if kind == "edge":
        return lambda step, scale: scale > edge
    if kind == "edge and rate":
        return lambda step, scale: scale > edge or generator.random() < rate
    return lambda step, scale: kind == "all"


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def record(scaler, verdict):
    """One trace as bytes. scaler: scale() -> float, update(bad) -> None, counters() -> ints; update
    raises RuntimeError where the library gives up."""
    bad_bits, changes = bytearray((STEPS + 7) // 8), bytearray((STEPS + 3) // 4)
    seen, raised = b"", NOT_RAISED
    for step in range(STEPS):
        before = scaler.scale()
        seen += struct.pack("<d", before)
        bad = bool(verdict(step, before))
        bad_bits[step // 8] |= bad << step % 8
        try:
            if raised == NOT_RAISED:
                scaler.update(bad)
        except RuntimeError:
            raised = step
        after = scaler.scale()
        change = 1 if after > before else 2 if after < before else 0
        changes[step // 4] |= change << step % 4 * 2
    digest = fnv1a(seen + b"".join(struct.pack("<q", n) for n in scaler.counters()))
    return bytes(bad_bits) + bytes(changes) + struct.pack("<HdQ", raised, scaler.scale(), digest)


def write(path, policy, make_scaler, source):
    """source: what is known of the library's file, for the JSON heading."""
    body = b""
    for trace in range(TRACES):
        generator = random.Random(f"{policy} {trace}")
        settings = random_settings(policy, generator)
        body += struct.pack(f"<{len(settings)}d", *settings.values())
        body += record(make_scaler(settings), random_verdict(generator))
    heading = json.dumps({"policy": policy, **source, "settings": list(SETTINGS[policy]),
                          "traces": TRACES, "steps": STEPS}, indent=1).encode()
    with open(path, "wb") as file:
        file.write(MAGIC + struct.pack("<I", len(heading)) + heading + body)
    print(f"{path}: {TRACES} traces, sha256 of the traces {hashlib.sha256(body).hexdigest()}")
