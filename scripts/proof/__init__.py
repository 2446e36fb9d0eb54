"""The proof: what is claimed of FutureWorld, measured by commands that anyone can run again."""
