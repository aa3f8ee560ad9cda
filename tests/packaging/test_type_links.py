"""`.types/vcpo_bench` shows type checkers the package, without a circle of links."""

import os
import runpy
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def test_there_is_a_link_for_every_room_and_module() -> None:
    tool = runpy.run_path(str(REPOSITORY / "tools" / "link_types.py"))
    assert tool["present"]() == tool["wanted"](), "run: python tools/link_types.py"


def test_following_the_links_ends() -> None:
    for folder, names, _ in os.walk(REPOSITORY / ".types", followlinks=True):
        for name in names:
            real = (Path(folder) / name).resolve()
            assert not Path(folder).resolve().is_relative_to(real), f"{folder}/{name} leads back to {real}"
