"""Which tracked files belong to the installed package."""

NOT_SHIPPED = {".ci", ".github", ".types", "docs", "examples", "notebooks", "studies", "tests", "tools"}
"""Folders of the checkout that are only there."""
DEVELOPMENT = {"setup.py", "noxfile.py"}


def of_the_package(name: str) -> bool:
    """Whether a tracked file belongs in the wheel."""
    top, *below = name.split("/")
    if below:
        return top not in NOT_SHIPPED
    return name in ("py.typed", "__init__.pyi") or (name.endswith(".py") and name not in DEVELOPMENT)
