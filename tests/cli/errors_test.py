# What goes wrong: exit codes, one line of valid UTF-8 each, and no trace of a failed conversion.
import os
import struct
import subprocess

import cli_support
from cli_support import CLEAN, FPINSPECT, floats, read_file, run, write_file, write_npy, write_safetensors


class CommandLine(cli_support.CliTest):
    def test_the_nearest_subcommand(self):
        self.fails(2, "tensro", says="did you mean tensor?")
        self.assertNotIn("did you mean", self.fails(2, "list"))

    def test_help_and_version(self):
        for arguments in [["--help"], ["-h"], ["show", "--help"], ["tensor", "-h"],
                          ["convert", "--help"], ["cast", "--help"], ["formats", "--help"],
                          ["backends", "--help"], ["verify", "--help"], ["scaler", "--help"],
                          ["arith", "--help"], ["range", "--help"], ["resolution", "--help"],
                          ["update", "--help"]]:
            text = self.ok(*arguments).out
            self.assertIn("Usage: fpinspect", text)
            self.assertIn("Exit codes: 0 ok, 1", text)
        self.assertRegex(self.ok("--version").out, r"\Afpinspect \d+\.\d+\.\d+\n\Z")

    def test_help_without_dashes(self):
        self.assertEqual(self.ok().out, self.ok("--help").out)
        self.assertEqual(self.ok("help").out, self.ok("--help").out)
        self.assertEqual(self.ok("help", "convert").out, self.ok("convert", "--help").out)
        self.assertIn("IN", self.ok("help", "convert").out)
        self.fails(2, "help", "frobnicate", says=["frobnicate", "formats, show"])
        self.fails(2, "help", "show", "cast", says="one subcommand")

    def test_usage(self):
        names = ("formats, show, cast, convert, quantize, dequantize, recipes, diff, compare, tensor, "
                 "report, scaler, arith, matmul, trace, replay, units, backends, verify")
        for arguments, says in [
                (["frobnicate"], ["frobnicate", names]), (["--json"], ["subcommand", names]),
                (["formats", "x"], ["x", "nothing but options"]),
                (["formats", "--nope"], ["--nope", "--json"]),
                (["formats", "--color=blue"], "--color"),
                (["--color", "red", "formats"], "--color"),
                (["show"], "FORMAT"), (["show", "e4m3"], "VALUE"), (["show", "e9m9", "1"], "e9m9"),
                (["show", "e4m3", "1", "2"], '"2" is one argument too many'),
                (["show", "1.5", "e4m3"], "show e4m3 1.5"),
                (["convert", "a", "b", "--too", "fp16"], ['no option "--too"', "--to, --from"]),
                (["convert", "a", "b", "fp16", "--to", "fp16"], "behind --to"),
                (["convert", "a", "b", "c", "d", "--to", "fp16"], ['"c"', "takes IN, OUT"]),
                (["tensor", "a", "--need", "30"], ['"30"', "30dB"]),
                (["tensor", "a", "--role", "x=gradient"], ['"gradient"', "gradients, adam_m"]),
                (["tensor", "a", "--role", "gradients"], "PATTERN=ROLE"), (["cast", "1", "e4m3"], "--to"),
                (["cast", "1", "--to"], "--to: needs a value"),
                (["convert", "a", "b", "--to", "fp16", "--to", "bf16"],
                 "--to: is given more than once"),
 (["show", "e4m3", "one"], '"one"'),
                (["show", "e4m3", "1.5.5"], "from byte 3 on"), (["show", "e4m3", ""], '""'),
                (["show", "e4m3", "0x100"], "8 bits"),
                (["show", "fp64", "0x1" + "0" * 16], "64 bits"),
                (["show", "--", "e4m3", "--json"], '"--json"'), (["tensor"], "FILE"),
                (["convert"], "IN"), (["cast"], "VALUE")]:
            self.fails(2, *arguments, says=says)

    def test_names_that_are_no_subcommand(self):
        for wrong, says in [("tensro", "did you mean tensor?"), ("arit", "did you mean arith?"),
                            ("exp", "`fpinspect arith exp X --rule RULE` computes it"),
                            ("nonsense", "there are: formats, show")]:
            self.fails(2, wrong, "1", says=[wrong, says])

    def test_json_before_and_after_the_subcommand(self):
        self.assertEqual(self.ok("--json", "formats").out, self.ok("formats", "--json").out)

    def test_hostile_arguments(self):
        hostile = b"a\x01\n\x1b[31m\xff\xc3\xe2\x80\xae\""
        for arguments in [[hostile], ["formats", hostile], ["formats", b"--" + hostile],
                          ["show", hostile, "1"], ["show", "e4m3", hostile],
                          ["cast", "1", "--to", hostile], ["cast", "1", "--rounding", hostile],
                          ["cast", hostile], ["cast", "--", b"-" + hostile]]:
            self.fails(2, *arguments, says=r"\x1b")
        self.fails(4, "convert", self.input(), self.path("o.npy"), "--to", "fp16", "--backend", hostile,
                   says=r"\x1b")
        # The mark that carries values past the option parser is an ordinary byte to the user.
        self.fails(2, "show", "e4m3", b"\x01-1", says=r'"\x01-1"')

    def input(self):
        return write_npy(self.path("in.npy"), "<f4", (2,), floats(1, 2))


class Contradictions(cli_support.CliTest):
    """Options that contradict each other, or that nothing would come of, are refused by name."""

    RULE = ["--seed=1", "--stream=1", "--offset=1", "--random-bits=8"]

    def setUp(self):
        super().setUp()
        self.x = write_npy(self.path("x.npy"), "<f4", (2,), floats(1, 2))
        self.out = self.path("o.npy")

    def refused(self, arguments, *says):
        before = sorted(os.listdir(self.folder))
        self.fails(2, *arguments, says=says)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_random_bits_without_stochastic_rounding(self):
        for arguments in [["cast", "1"], ["convert", self.x, self.out, "--to", "fp16"],
                          ["quantize", self.x, self.path("q.safetensors"), "--to", "e4m3"],
                          ["arith", "add", "1", "2", "--format", "fp16"]]:
            for option in self.RULE:
                self.refused([*arguments, option], option.split("=")[0], "--rounding stochastic")
                self.refused([*arguments, option, "--rounding", "to_odd"], "--rounding stochastic")

    def test_pairs(self):
        quantize = ["quantize", self.x, self.path("q.safetensors")]
        recipe = [*quantize, "--recipe", "MSAMP"]
        torch = ["scaler", "--policy", "torch", "--generate", "drop"]
        tensor = ["tensor", self.x]
        verify = ["verify", "--tensor-cores"]
        for arguments, *says in [
                # also where the value is the default: it would be ignored all the same
                ([*recipe, "--tile", "1x128"], "--recipe and --tile"),
                ([*recipe, "--scale-rule", "te"], "--recipe and --scale-rule"),
                ([*recipe, "--eps", "0"], "--recipe and --eps"),
                ([*recipe, "--upper-bound", "1"], "--recipe and --upper-bound"),
                ([*recipe, "--nonfinite", "te"], "--recipe and --nonfinite"),
                ([*recipe, "--overflow", "saturate"], "--recipe and --overflow"),
                ([*quantize, "--to", "e4m3", "--outputs", "row", "--transposed"],
                 "--transposed and --outputs"),
                ([*quantize, "--to", "e4m3", "--eps", "2", "--upper-bound", "1"], "--eps"),
                ([*tensor, "--recipes", "--to", "e5m2"], "--recipes and --to"),
                ([*tensor, "--recipes", "--all-formats"], "--recipes and --all-formats"),
                ([*tensor, "--recipes", "--ascii"], "--recipes and --ascii"),
                ([*tensor, "--to", "bf16", "--all-formats"], "--to and --all-formats"),
                ([*tensor, "--recipes", "--need", "30dB"], "--recipes and --need"),
                ([*tensor, "--recipes", "--role", "*=weights"], "--recipes and --role"),
                ([*tensor, "--recipes", "--details", "*"], "--recipes and --details"),
                ([*tensor, "--json", "--details", "*"], "--json and --details"),
                ([*tensor, "--json", "--ascii"], "--json and --ascii"),
                (["--json", *tensor, "--ascii"], "--json and --ascii"),
                ([*tensor, "--json", "--color", "always"], "--color and --json"),
                (["--color", "always", "formats", "--json"], "--color and --json"),
                ([f"{self.x}#a", "--tensor", "a"], "not a subcommand"),
                (["tensor", f"{self.path('m.safetensors')}#a", "--tensor", "a"], "--tensor"),
                ([*torch, "--plot", "--json"], "--plot and --json"),
                ([*torch, "--trace", "t.csv"], "--trace and --generate"),
                ([*torch, "--seed", "1"], "--seed", "random or noisy"),
                ([*torch, "--ascii"], "--ascii", "--plot"),
                ([*torch, "--set", "init_scale=1", "init_scale=2"], '"init_scale" is given twice'),
                ([*torch, "--plot", "--out", "-"], "--out -"),
                ([*torch, "--json", "--out", "-"], "--out -"),
                (["scaler", "--policy", "torch", "--trace", "t.csv", "--steps", "5"], "--generate"),
                (["scaler", "--generate", "drop", "--plot"], "--plot", "--policy"),
                (["scaler", "--generate", "drop", "--json"], "--json", "--policy"),
                (["scaler", "--generate", "drop", "--set", "init_scale=1"], "--set", "--policy"),
                (["diff", self.x, self.x, "--from", "bf16"], "--from", "--source"),
                (["diff", f"{self.x}#a", self.x], "A: whole files"),
                (["compare", self.x, self.x, "--from-original", "bf16"], "--from-original", "--original"),
                (["arith", "add", "1", "2", "--format", "fp16", "--from", "fp16"], "--from"),
                (["arith", "add", "1", "2", "--format", "fp16", "--out", self.out, "--flags",
                  self.out], "--out and --flags"),
                ([*verify, "--backend", "avx2"], "--backend"), ([*verify, "--exhaustive"], "--exh"),
                ([*verify, "--threads", "2"], "--threads"),
                ([*verify, "--results", "r", "--record", "s"], "--record"),
                ([*verify, "--results", "r", "--cases", "256"], "--cases"),
                ([*verify, "--results", "r", "--seed", "1"], "--seed"),
                ([*verify, "--record", "-"], "--record"),
                *((["verify", option, "1"], option, "--tensor-cores") for option in
                  ["--unit", "--instruction", "--cases", "--seed", "--record", "--results"])]:
            self.refused(arguments, *says)

    def test_empty_values(self):
        for arguments, option in [
                (["tensor", self.x], "--from"), (["tensor", self.x], "--to"),
                (["convert", self.x, self.out, "--to", "fp16"], "--backend"),
                (["quantize", self.x, "q.safetensors", "--to", "e4m3"], "--recipe"),
                (["arith", "add", "1", "2", "--format", "fp16"], "--dest"),
                (["scaler", "--generate", "drop"], "--out")]:
            self.refused([*arguments, option, ""], option + ": the value is empty")
            self.refused([*arguments, option + "="], option + ": needs a value")

    def test_what_fits_together_is_taken(self):
        self.ok("tensor", self.x, "--json", "--all-formats")  # what JSON has anyway
        self.ok("tensor", self.x, "--json", "--color", "never")
        self.ok("cast", "1", "--rounding", "stochastic", *self.RULE)
        self.ok("scaler", "--policy", "torch", "--generate", "noisy", "--seed", "3", "--steps", "9")

    def test_quotes_in_messages_are_quotes(self):
        line = self.fails(2, "scaler", "--policy", "torch", "--generate", "drop", "--set",
                          "init_scale=abc")
        self.assertEqual(line, "fpinspect: --set: init_scale: must be a number, got 'abc'")


class Names(cli_support.CliTest):
    def test_formats_as_people_type_them(self):
        for typed, format in [("E4M3", "e4m3"), ("float16", "fp16"), ("half", "fp16"),
                              ("bfloat16", "bf16"), ("e4m3fn", "e4m3"), ("float8_e4m3fn", "e4m3"),
                              ("F8_E4M3", "e4m3"), ("torch.bfloat16", "bf16"),
                              ("ml_dtypes.float8_e5m2", "e5m2"), ("BF16", "bf16"),
                              ("torch.float32", "fp32"), ("float4_e2m1fn", "e2m1")]:
            (cast,) = self.ok_json("cast", "1", "--to", typed)["casts"]
            self.assertEqual([r["format"] for r in cast["results"]], [format], typed)
            self.assertEqual(self.ok_json("show", typed, "1")["format"], format)
        x = write_npy(self.path("x.npy"), "<f4", (2,), floats(1, 2))
        document = self.ok_json("quantize", x, self.path("q.safetensors"), "--to", "float8_e5m2")
        self.assertEqual(document["to"], "e5m2")
        document = self.ok_json("dequantize", self.path("q.safetensors"), self.path("d.npy"),
                                "--to", "torch.bfloat16")
        self.assertEqual(document["to"], "bf16")
        self.fails(2, "cast", "1", "--to", "float8_e4m3", says="e4m3, e5m2")  # has infinities


class Files(cli_support.CliTest):
    def test_input(self):
        broken = write_file(self.path("broken.npy"), b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f4'}")
        pickled = write_npy(self.path("pickle.npy"), "|O", (1,), bytes(8))
        torch = write_file(self.path("model.pt"), b"PK\x03\x04" + bytes(60))
        short = write_safetensors(self.path("short.safetensors"), [("a", "F32", (4,), bytes(8))])
        booleans = write_npy(self.path("bool.npy"), "|b1", (1,), b"\x01")
        missing = self.path("missing.npy")
        for path, says in [(missing, missing), (self.folder, self.folder), (broken, "broken.npy"),
                           (pickled, "pickle.npy"), (torch, "model.pt"),
                           (short, "short.safetensors"),
                           ("", ""), ("/dev/null", "/dev/null")]:
            self.fails(3, "tensor", path, says=says)
            self.fails(3, "convert", path, self.path("o.npy"), "--to", "fp16", says=says)
        self.fails(3, "convert", booleans, self.path("o.npy"), "--to", "fp16", says="BOOL")
        self.fails(3, "tensor", booleans, "--tensor", "x", says='"x"')
        self.assertFalse(os.path.exists(self.path("o.npy")))

    def test_hostile_names(self):
        name = b"n\n\x1b[31m\xff\"\xe2\x80\xae"
        path = os.fsencode(self.folder) + b"/" + name
        self.fails(3, "tensor", path, says=[r"n\x0a\x1b[31m\xff", r"\xe2\x80\xae"])
        tensor = "line\nbreak \x1b[31m\u202e\""
        model = write_safetensors(self.path("m.safetensors"), [(tensor, "F32", (1,), floats(1))])
        os.rename(model, path)
        shown = run("tensor", path)
        self.assertEqual((shown.code, shown.err), (0, ""))
        self.assertIn(r'line\x0abreak \x1b[31m\xe2\x80\xae\"', shown.out)
        self.assertNotIn("\x1b", shown.out)
        self.assertEqual(run("tensor", path, "--json").json()["tensors"][0]["name"], tensor)
        self.fails(3, "tensor", path, "--tensor", "x", says=r"line\x0abreak")
        done = run("convert", path, path + b".npy", "--to", "fp16")
        self.assertEqual((done.code, done.err.count("\n")), (0, 1))
        self.assertTrue(done.err[:-1].isprintable())
        document = run("convert", path, path + b".npy", "--to", "fp16", "--json").json()
        self.assertIn("\ufffd", document["input"])  # JSON is Unicode; the byte is lost there


class Output(cli_support.CliTest):
    def setUp(self):
        super().setUp()
        self.data = floats(*range(4096))
        self.input = write_npy(self.path("in.npy"), "<f4", (4096,), self.data)
        self.before = read_file(self.input)

    def test_folder_that_is_not_there(self):
        self.fails(3, "convert", self.input, self.path("no/o.npy"), "--to", "fp16", says="no/o.npy")

    def test_target_that_is_a_folder_or_a_device(self):
        os.mkdir(self.path("folder.npy"))
        os.symlink("/dev/null", self.path("device.npy"))
        os.mkfifo(self.path("fifo.npy"))
        for name in ["folder.npy", "device.npy", "fifo.npy"]:
            self.fails(3, "convert", self.input, self.path(name), "--to", "fp16", says=name)
        self.assertEqual(sorted(os.listdir(self.folder)),
                         ["device.npy", "fifo.npy", "folder.npy", "in.npy"])
        self.assertTrue(os.path.exists("/dev/null") and not os.path.isfile("/dev/null"))

    def test_refused_before_anything_is_written(self):
        target = self.path("old.npy")
        write_npy(target, "|u1", (1,), b"1")
        before = read_file(target)
        for code, options in [(2, ["--to", "fp64"]), (2, ["--to", "fp16", "--from", "bf16"]),
                              (2, ["--to", "fp16", "--seed", "x"]),
                              (4, ["--to", "fp16", "--backend", "cuda:9"])]:
            self.fails(code, "convert", self.input, target, *options)
            self.assertEqual(read_file(target), before)
        self.assertEqual(sorted(os.listdir(self.folder)), ["in.npy", "old.npy"])

    def test_full_disk(self):
        for arguments in [["formats"], ["cast", "1"], ["show", "e4m3", "1"], ["tensor", self.input],
                          ["tensor", self.input, "--json"], ["--help"]]:
            with open("/dev/full", "wb") as full:
                done = subprocess.run([FPINSPECT, *arguments], stdout=full, stderr=subprocess.PIPE,
                                      env=CLEAN, timeout=60)
            self.assertEqual(done.returncode, 3, arguments)
            self.assertEqual(done.stderr,
                             b"fpinspect: standard output: No space left on device\n")

    def test_closed_output(self):
        done = subprocess.run(["/bin/sh", "-c", '"$0" formats >&-', FPINSPECT], capture_output=True,
                              env=CLEAN, timeout=60)
        self.assertEqual((done.returncode, done.stderr),
                         (3, b"fpinspect: standard output: Bad file descriptor\n"))
        # The output file does not take the place of the closed descriptor.
        target = self.path("o.npy")
        done = subprocess.run(["/bin/sh", "-c", '"$0" convert "$1" "$2" --to fp16 --json >&- <&-',
                               FPINSPECT, self.input, target], capture_output=True, env=CLEAN,
                              timeout=60)
        self.assertEqual(done.returncode, 3)
        self.assertEqual(cli_support.read_npy(target)[:2], ("<f2", (4096,)))

    def test_reader_that_has_gone(self):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run([FPINSPECT, "formats"], stdout=writing, stderr=subprocess.PIPE,
                              env=CLEAN, timeout=60)
        os.close(writing)
        self.assertEqual((done.returncode, done.stderr), (3, b""))


class Backends(cli_support.CliTest):
    def test_unknown(self):
        source = write_npy(self.path("in.npy"), "<f4", (1,), floats(1))
        target = self.path("o.npy")
        self.fails(4, "convert", source, target, "--to", "fp16", "--backend", "abacus",
                   says=["abacus", "reference"])
        for arguments in [["convert", source, target, "--to", "fp16"], ["tensor", source]]:
            self.fails(4, *arguments, env={"SAMEBITS_BACKEND": "abacus"},
                       says=["abacus", "reference"])
        self.assertFalse(os.path.exists(target))

    def test_every_name_means_the_same_bits(self):
        source = write_npy(self.path("in.npy"), "<f4", (4,), struct.pack("<4f", 0.1, -3, 1e9, 1e-9))
        default = self.convert(source, "--to", "fp16")
        backends = self.ok_json("backends")["backends"]
        self.assertEqual(backends[0]["name"], "reference")
        for backend in backends:
            options = ["--to", "fp16", "--backend", backend["name"]]
            if backend["supported"] and backend["memory"] == "host":
                self.assertEqual(self.convert(source, *options), default)
            else:
                why = backend["why_unsupported"] or "works on device memory"
                self.fails(4, "convert", source, self.path("o.npy"), *options, says=why)
