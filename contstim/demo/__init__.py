"""The whole story on embedded text, with models trained on the spot: `run_demo` in `run`."""
