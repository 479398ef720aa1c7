"""The paper's experiments: each module has one `reproduce(directory, ...)` that computes, draws and judges."""
