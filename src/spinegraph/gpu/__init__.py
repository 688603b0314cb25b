"""The whole method on one CUDA device, by Torch and NumPy alone; on a CPU the same code runs for tests."""
