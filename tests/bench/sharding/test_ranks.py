"""Where the processes of a cell meet."""

from pathlib import Path

import pytest

from vcpo_bench.bench.sharding.ranks import meeting_place

TABLES = [Path("/proc/net/tcp"), Path("/proc/net/tcp6")]
LISTENING, LOOPBACK = "0A", "0100007F"


def listening(port: int) -> list[str]:
    """Addresses of this machine at which someone listens on a port, in hexadecimal."""
    rows = [line.split() for table in TABLES if table.exists() for line in table.read_text().splitlines()[1:]]
    return [row[1].split(":")[0] for row in rows if row[3] == LISTENING and int(row[1].split(":")[1], 16) == port]


def test_they_meet_at_the_port_that_was_opened() -> None:
    opened = meeting_place(2)
    met = meeting_place(2, opened.port)
    met.set("from", "the other")
    assert opened.get("from") == b"the other"


@pytest.mark.skipif(not TABLES[0].exists(), reason="reads open ports from /proc, as Linux has it")
def test_the_network_cannot_reach_it() -> None:
    opened = meeting_place(2)
    assert listening(opened.port) == [LOOPBACK]
