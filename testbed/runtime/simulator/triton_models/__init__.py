"""The Triton models; each is loaded by a model.py of the image, and only inside of Triton."""
