"""The rows of the workload library, one module per family; none imports torch."""
