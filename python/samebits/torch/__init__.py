"""The library on PyTorch tensors: CPU and CUDA, on the current stream, without a copy."""
