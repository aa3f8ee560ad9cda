"""A start model that is the same everywhere and small enough to travel: matrices as bytes with a scale for each row.

    python tests/gpu/start.py --model smollm2-sums     # writes smollm2-sums.start, for parts.py

What is packed is another start than the folder it is made of: each weight is rounded to 1/127 of the largest of its
row. Unpack it on every machine that takes part in a study, this one too: cells are known by the hash of their start.
"""

from __future__ import annotations

import argparse
import io
import shutil
import tarfile
from pathlib import Path

import torch
from safetensors.torch import load, load_file, save, save_file

WEIGHTS, PACKED, SCALE = "model.safetensors", "packed.safetensors", ":scale"
STEPS = 127


def pack(folder: Path) -> Path:
    """Write `FOLDER.start` beside a model's folder."""
    packed: dict[str, torch.Tensor] = {}
    for name, weight in load_file(folder / WEIGHTS).items():
        if weight.ndim == 2:
            scale = (weight.float().abs().amax(1, keepdim=True) / STEPS).clamp(min=torch.finfo(torch.float32).tiny)
            packed |= {name: (weight.float() / scale).round().to(torch.int8), name + SCALE: scale}
        else:
            packed[name] = weight.float()
    out = folder.with_name(f"{folder.name}.start")
    with tarfile.open(out, "w:gz", compresslevel=1) as archive:  # bytes of weights hardly compress
        data = save(packed)
        facts = tarfile.TarInfo(PACKED)
        facts.size = len(data)
        archive.addfile(facts, io.BytesIO(data))
        for path in sorted(folder.iterdir()):
            if path.suffix in (".json", ".jinja"):
                archive.add(path, path.name)
    return out


def unpack(file: Path, folder: Path) -> Path:
    """Write the model's folder, its weights in bfloat16; returns it."""
    if not folder.exists():
        draft = folder.with_suffix(".draft")
        shutil.rmtree(draft, ignore_errors=True)
        with tarfile.open(file) as archive:
            archive.extractall(draft, filter="data")
        packed = load((draft / PACKED).read_bytes())
        (draft / PACKED).unlink()
        whole = {n: w.float() * packed.get(n + SCALE, torch.ones(())) for n, w in packed.items() if SCALE not in n}
        save_file({n: w.bfloat16() for n, w in whole.items()}, draft / WEIGHTS, {"format": "pt"})
        draft.rename(folder)
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="folder of the model")
    parser.add_argument("--unpack", action="store_true", help="write the folder NAME-start of NAME.start instead")
    asked = parser.parse_args()
    made = asked.model.with_name(f"{asked.model.name}.start")
    print(unpack(made, asked.model.with_name(f"{asked.model.name}-start")) if asked.unpack else pack(asked.model))
