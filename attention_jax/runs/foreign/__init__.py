"""Models that other programs have trained, read from folders as Hugging Face's transformers saves.

Neither transformers nor PyTorch is needed: parameters are in safetensors files, configs in JSON.
"""
