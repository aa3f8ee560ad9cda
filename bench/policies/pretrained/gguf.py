"""From a GGUF file to an ordinary folder of a model."""

from __future__ import annotations

from pathlib import Path

from vcpo_bench.bench.policies.hf.packages import hf_packages
from vcpo_bench.errors import UsageError


def check_packages() -> None:
    """Refuse to go on where a GGUF file could not be converted.

    Raises:
        UsageError: A package is missing.
    """
    with hf_packages():
        import gguf as _  # transformers reads the file with it
        import transformers as _  # noqa: F401, F811


def convert(gguf: Path, out: Path) -> None:
    """Write the model in a GGUF file as a Hugging Face folder, its weights dequantized and rounded to bfloat16.

    Block-wise quantization puts many weights half way between two bfloat16 numbers (8% of SmolLM2's in Q4_1). Trained
    in bfloat16 products, each of these would jump to another number at the first update, however small.

    Raises:
        UsageError: transformers cannot read the file.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    where = {"gguf_file": gguf.name, "local_files_only": True, "trust_remote_code": False}
    try:
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, **where)
        network = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype=torch.float32, **where)
    except Exception as error:  # whatever the parsers of two packages raise for a file that is damaged or unknown
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UsageError(f"--model {gguf}: cannot be read as a GGUF model ({reason})") from error
    del network.config.quantization_config  # else transformers refuses to save weights that are not quantized any more
    network.hf_quantizer = None
    network.to(torch.bfloat16).save_pretrained(out)
    tokenizer.save_pretrained(out)
