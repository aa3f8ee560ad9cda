"""The tasks: one file each, named by what the user types; `TASKS.parse("chain(n=8)")` gives one."""

from vcpo_bench.bench.tasks.base import HELD_OUT, Demonstrations, Task, per_response
from vcpo_bench.bench.tasks.catalog import TASKS, NamedTask
from vcpo_bench.bench.tasks.environment import Reply, Turn
from vcpo_bench.bench.tasks.environment_task import EnvironmentTask
from vcpo_bench.bench.tasks.token_task import TokenTask, integers, token_task

__all__ = [
    "HELD_OUT", "TASKS", "Demonstrations", "EnvironmentTask", "NamedTask", "Reply", "Task", "TokenTask", "Turn",
    "integers", "per_response", "token_task",
]  # fmt: skip
