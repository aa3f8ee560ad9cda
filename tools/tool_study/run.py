"""The study of tool use: `python tools/tool_study/run.py RESULTS [--jobs 1]`.

Makes the runs that are missing. Stopped at any time, the same command goes on.
"""

from __future__ import annotations

from design import ARMS, main

if __name__ == "__main__":
    main(ARMS, __doc__)
