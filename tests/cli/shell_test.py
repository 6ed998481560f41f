"""completion and manual: scripts for shells and the manual page name every subcommand and option."""

import re
import shutil
import subprocess

from cli_support import CliTest, run


def subcommands():
    """The names of all subcommands, from the text of --help."""
    listed = run("--help").out.split("Subcommands:")[1]
    return re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE)


def options(command):
    """The long options of a subcommand, from its --help."""
    return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", run(command, "--help").out.split("Options:")[1]))


class ShellTest(CliTest):
    def bash(self, *words):
        """What bash offers for the last of the words."""
        script = run("completion", "bash").out
        line = " ".join(f"'{word}'" for word in ("fpinspect", *words))
        script += (f"COMP_WORDS=({line}); COMP_CWORD={len(words)}; _fpinspect; "
                   "printf '%s\\n' \"${COMPREPLY[@]}\"\n")
        done = subprocess.run(["bash", "-eu", "-c", script], capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return set(done.stdout.split())

    def test_bash_offers_subcommands_and_options(self):
        names = set(subcommands())
        self.assertGreaterEqual(len(names), 25)
        self.assertTrue(names | {"help", "--version"} <= self.bash(""))
        self.assertEqual(self.bash("ten"), {"tensor"})
        self.assertEqual(self.bash("help", "ten"), {"tensor"})
        for name in names:
            self.assertTrue(options(name) <= self.bash(name, "--"), name)
        self.assertEqual(self.bash("tensor", "file.np"), set())  # bash completes file names

    def test_zsh_and_fish_name_every_option(self):
        zsh, fish = run("completion", "zsh").out, run("completion", "fish").out
        for name in subcommands():
            block = zsh.split(f"\n  {name}) _arguments")[1].split(";;")[0]
            self.assertTrue(options(name) <= set(re.findall(r"'(--[a-z0-9-]+)\[", block)), name)
            own = re.findall(rf"seen_subcommand_from {name}' -l ([a-z0-9-]+)", fish)
            self.assertTrue(options(name) <= {f"--{one}" for one in own}, name)
        for shell, script in (("zsh", zsh), ("fish", fish)):
            if shutil.which(shell):
                done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""), shell)

    def test_the_manual_page_names_every_option(self):
        page = run("manual").out
        self.assertTrue(page.startswith(".TH FPINSPECT 1 "))
        for name in subcommands():
            section = page.split(f'.SS "fpinspect {name}"\n')[1].split(".SS ")[0]
            found = {one.replace("\\-", "-") for one in re.findall(r"(?:\\-){2}(?:[a-z0-9]|\\-)+",
                                                                   section)}
            self.assertTrue(options(name) <= found, name)
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z"], input=page.encode(),
                                  capture_output=True)
            self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_an_unknown_shell_is_refused(self):
        result = run("completion", "tcsh")
        self.assertEqual(result.code, 2)
        self.assertIn("SHELL: must be one of bash, zsh, fish", result.err)
