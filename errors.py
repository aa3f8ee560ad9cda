"""The errors a user can cause. Each message says what is wrong and what to do about it."""


class VcpoBenchError(Exception):
    """Root of every error this project raises on purpose."""


class UsageError(VcpoBenchError, ValueError):
    """The request cannot be carried out as typed (exit code 2)."""


class DamagedResultError(VcpoBenchError, ValueError):
    """A file of a results folder cannot be read or breaks its schema."""


class DiskFullError(VcpoBenchError):
    """There is no space left to write to; the message names the folder (exit code 2)."""
