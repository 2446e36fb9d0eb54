"""FutureWorld's extension of verl: everything that needs torch, Ray, vLLM or verl.

Nothing of verl is copied or patched; it is extended by registration and subclassing. `futureworld`
finds this package by entry point and never imports it at start.
"""
