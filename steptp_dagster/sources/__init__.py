"""The workload library: PyTorch programs with named shapes, and programs that users bring."""
