"""How the program ends: signals during start-up, files that vanish, names with control characters."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from tests.support import command

WAITING_IMPORT = """
import signal, sys, time
from seqatt.cli import main
class Slow:
    def find_spec(self, name, *_):
        if name == "seqatt.cli.app":
            print("importing", flush=True)
            try:
                time.sleep(60)
            except BaseException:  # as compiled libraries make of any exception
                raise ImportError("failed to import") from None
sys.meta_path.insert(0, Slow())
main.main()
"""


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize(
    ("number", "code", "message"),
    [(signal.SIGTERM, 143, "stopped by SIGTERM\n"), (signal.SIGINT, 130, "interrupted\n")],
)
def test_a_signal_while_libraries_are_imported_ends_with_a_message_and_its_exit_code(number, code, message):
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING_IMPORT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "importing\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (code, message)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize("seconds", [0.3, 1.0])
def test_sigterm_during_start_up_ends_with_exit_code_143(seconds):
    process = subprocess.Popen(
        [sys.executable, "-m", "seqatt", "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    time.sleep(seconds)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (143, "stopped by SIGTERM\n")


def test_messages_name_the_flags_of_options(tmp_path):
    rows = [f"{i % 7},{i % 5},{min(i % 9, i // 9 % 9)}" for i in range(200)]
    (tmp_path / "data.csv").write_text("\n".join(["a,b,y", *rows]))
    arguments = [str(tmp_path / "data.csv"), "--target", "y", "-k", "1", "--method", "f_test"]
    done = command.run("select", *arguments)
    assert "--task 'regression'" in done.stderr
    assert "task=" not in done.stderr
    done = command.run("select", *arguments, "--cost", "a=3")
    assert "--budget 100" in done.stderr


@pytest.mark.parametrize(
    "select", [("select", "--json"), ("compare", "--json", "--methods", "f_test", "--seeds", "1")]
)
def test_the_types_of_columns_that_a_message_names_can_be_given(tmp_path, select):
    rows = [f"{i % 7:02},{'?' if i % 50 == 3 else i % 10},{'ab'[i % 7 > 3]}" for i in range(300)]
    (tmp_path / "data.csv").write_text("\n".join(["code,size,y", *rows]))
    arguments = [*select, tmp_path / "data.csv", "--target", "y", "-k", "1"]
    first = command.run(*arguments)
    assert "--numeric code for a column of numbers" in first.stderr
    assert "--categorical size if that is a category" in first.stderr
    assert "column_types" not in first.stderr
    done = command.run(*arguments, "--numeric", "code", "--categorical", "size")
    assert (done.returncode, done.stderr) == (0, "")
    for flags, message in (
        (("--categorical", "cod"), "error: --categorical, --numeric: no column 'cod'; did you mean 'code'?"),
        (("--weight", "w"), "error: --weight: no column 'w'"),
    ):
        assert message in command.run(*arguments, *flags).stderr
    assert command.run(*arguments, "--numeric", "code", "--categorical", "code").returncode == 2


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_sigterm_where_python_ignores_exceptions_ends_the_program_too():
    code = (
        "import os, signal, sys, seqatt.cli.main as main\n"
        "class Deleted:\n"
        "    def __del__(self): os.kill(os.getpid(), signal.SIGTERM)\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'seqatt.cli.app': Deleted()\n"
        "sys.meta_path.insert(0, Finder())\n"
        "main.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "methods"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "stopped by SIGTERM\n")


def test_sigterm_is_handled_before_any_library_is_imported():
    code = (
        "import sys, seqatt.cli.main; print(sorted({'typer', 'torch', 'numpy', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


TABLE = "a\x1b[31m,b,y\n" + "".join(f"{i},{i * 7 % 5},{i % 2}\n" for i in range(40))


@pytest.mark.slow
def test_a_selection_with_held_out_rows_does_not_import_scikit_learn(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    arguments = ["select", str(tmp_path / "t.csv"), "-t", "y", "-k", "1", "--holdout", "0.3", "--epochs", "1"]
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "seqatt", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "seqatt.cli.holdout" in done.stderr
    assert "sklearn" not in done.stderr


def test_control_characters_of_column_names_are_shown_escaped(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    done = command.run("select", tmp_path / "t.csv", "-t", "y", "-k", 2, "--method", "random")
    assert done.returncode == 0, done.stderr
    assert r"a\x1b[31m" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


def test_control_characters_of_an_error_are_shown_escaped(tmp_path):
    done = command.run("select", tmp_path / "\x1b2Jno.csv", "-t", "y", "-k", 1)
    assert done.returncode == 1
    assert r"\x1b2Jno.csv: no such file or folder" in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("content", ["", "a", "a,b,y\n", "a,b,y\n1,2", '{"format": 3, "runs": ['])
@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.arrow", "t.csv.gz"])
def test_an_empty_or_half_written_table_is_named(content, name, tmp_path):
    (tmp_path / name).write_text(content)
    done = command.run("select", tmp_path / name, "-t", "y", "-k", 1, "--method", "f_test")
    assert done.returncode == 1
    assert done.stderr.startswith(("error: target", f"error: {tmp_path / name}")), done.stderr
    assert name in done.stderr or "target" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 3}', '{"format": 3, "runs": ['])
def test_a_half_written_comparison_is_named(content, tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "comparison.json").write_text(content)
    done = command.run(
        "compare", tmp_path / "t.csv", "-t", "y", "-k", 1, "--methods", "random", "--out", tmp_path / "out"
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {tmp_path / 'out' / 'comparison.json'}: not a saved comparison")


def test_no_help_text_loses_words_that_look_like_markup():
    from rich.markup import render
    from typer.main import get_command

    from seqatt.cli.app import app

    for name, subcommand in get_command(app).commands.items():
        for parameter in subcommand.params:
            text = getattr(parameter, "help", None) or ""
            assert render(text).plain == text.replace("\\[", "["), f"{name} --{parameter.name}"
