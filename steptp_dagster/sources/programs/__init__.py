"""The programs: ``nn.Module`` classes by family. Only these files import torch."""
