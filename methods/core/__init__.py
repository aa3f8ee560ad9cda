"""What every method and part rests on: batch, view, update, interfaces, buffers, errors."""
