"""`python -m vcpo_bench`: the same as the installed command."""

from vcpo_bench.cli import main

if __name__ == "__main__":
    main()
