"""The command ``seqatt``: in a process of its own, or in this one, which does not import torch again."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout

import pandas  # noqa: F401  # before a command runs in this process: the commands keep it from being imported
import pytest

from seqatt.cli.main import main

HIDDEN_BY_PYTHON = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)


def run_process(*arguments: object, **options) -> subprocess.CompletedProcess[str]:
    """Run ``seqatt`` as a user does; for what is about the process: how it starts, is stopped and ends."""
    command = [sys.executable, "-m", "seqatt", *map(str, arguments)]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run(command, text=True, timeout=120, check=False, **options)


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run ``seqatt`` in this process; the same exit code and output as ``run_process`` in less time."""
    command = ["seqatt", *map(str, arguments)]
    out, err = io.StringIO(), io.StringIO()
    handlers, code = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}, 0
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.resetwarnings()
        for category in HIDDEN_BY_PYTHON:
            warnings.simplefilter("ignore", category)
        patch.setattr(sys, "argv", command)
        patch.setattr(os, "_exit", sys.exit)
        try:
            with redirect_stdout(out), redirect_stderr(err):
                main()
        except SystemExit as ended:
            code = ended.code or 0
        finally:
            for each, handler in handlers.items():
                signal.signal(each, handler)
    return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())
