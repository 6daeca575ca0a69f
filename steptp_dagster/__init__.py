"""Step-TP: step-level training data for tensor-program optimization."""
