"""Running code that a model wrote: an interpreter that cannot reach anything, inside walls of the operating system."""

from vcpo_bench.bench.sandbox.python import Ended, PythonSandbox, check_installed, python_sandbox

__all__ = ["Ended", "PythonSandbox", "check_installed", "python_sandbox"]
