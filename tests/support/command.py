"""The command ``seqatt``: in a process of its own, or in this one, which does not import torch again."""

from __future__ import annotations

import io
import os
import pty
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


def run_on_terminal(*arguments: object) -> str:
    """What Python with these arguments writes on stderr if that is a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    command = [sys.executable, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                chunk = os.read(ours, 1 << 16)
            except OSError:  # the other end was closed
                break
            if not chunk:
                break
            written += chunk
        process.wait(120)
    os.close(ours)
    return written.decode()
