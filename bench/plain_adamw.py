"""AdamW of PyTorch without the ties to its compiler, whose import takes every process two seconds."""

from __future__ import annotations

from inspect import unwrap

import torch
from torch.optim import Optimizer


class PlainAdamW(torch.optim.AdamW):
    """The same arithmetic. PyTorch wraps these methods only to keep its compiler out of them; nothing is compiled."""

    add_param_group = unwrap(Optimizer.add_param_group)
    load_state_dict = unwrap(Optimizer.load_state_dict)
    state_dict = unwrap(Optimizer.state_dict)
    zero_grad = unwrap(Optimizer.zero_grad)
    step = torch.no_grad()(unwrap(torch.optim.AdamW.step))
