"""One small translation, so that everything a translation loads is there."""

import torch
from torch import nn

import steptp_dagster.verify.screen  # noqa: F401 - TVM, in the process that is copied
from steptp_dagster.translate.fidelity import fidelity
from steptp_dagster.translate.translate import Translation, translate


def translate_something() -> None:
    """Translate a layer and compare it."""
    module = nn.Sequential(nn.Linear(3, 2), nn.ReLU()).eval()
    inputs = (torch.ones(2, 3),)
    found = translate(module, inputs)
    if isinstance(found, Translation):
        fidelity(module, inputs, found)
