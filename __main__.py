"""The command `vcpo-bench`, also as `python -m vcpo_bench`. Signals are handled before anything else is imported."""

from vcpo_bench.interrupts import run_guarded


def main() -> None:
    """Run the command line."""
    run_guarded(_command_line)


def _command_line() -> None:
    from vcpo_bench.cli import main

    main()


if __name__ == "__main__":
    main()
