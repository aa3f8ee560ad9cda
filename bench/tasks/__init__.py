"""The tasks, behind one interface: `get_task("chain(n=8)")`."""

from vcpo_bench.bench.tasks.base import HELD_OUT, Demonstrations, EmbeddedTask, Task
from vcpo_bench.bench.tasks.registry import get_task, task_names, task_types

__all__ = ["HELD_OUT", "Demonstrations", "EmbeddedTask", "Task", "get_task", "task_names", "task_types"]
