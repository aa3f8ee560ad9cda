"""One cell, or several as one stack: trained, resumed and ended."""
