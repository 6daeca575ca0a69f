"""From PyTorch modules to LEIR: torch.export, core ATen, one small function per operator."""
