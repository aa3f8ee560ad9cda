"""The live page: results folders side by side while their runs train, in a browser of this machine."""
