"""The transcripts of docs/results/2026-11-24-published-weights.md, on weights that wheels contain.

fpinspect must print each transcript again, byte for byte. PUBLISHED_WEIGHTS is a folder into which these wheels were
unpacked; without it nothing runs:

    pip download --no-deps silero-vad==6.2.3 lpips==0.1.4 resemblyzer==0.1.4 wordllama==0.4.0.post1
    for wheel in *.whl; do python -m zipfile -e "$wheel" FOLDER; done
"""
import os
import shlex
import sys

import cli_support
from cli_support import read_text
import docs_test

FOLDER = os.environ.get("PUBLISHED_WEIGHTS")
if not FOLDER:
    print("skipped: PUBLISHED_WEIGHTS is not set")
    sys.exit(cli_support.SKIPPED)

PAGE = os.path.join(docs_test.ROOT, "docs", "results", "2026-11-24-published-weights.md")


class PublishedWeights(cli_support.CliTest):
    def test_transcripts(self):
        found = list(docs_test.transcripts(read_text(PAGE)))
        self.assertEqual(len(found), 7)
        for _, command, expected in found:
            with self.subTest(command):
                _, *arguments = shlex.split(command[2:])
                done = cli_support.run(*arguments, cwd=FOLDER)
                self.assertRegex(done.out + done.err, docs_test.pattern(expected))
