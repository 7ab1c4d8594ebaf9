"""Record what a retrieval-augmented system retrieved, kept and dropped."""
