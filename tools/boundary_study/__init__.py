"""The boundary study of prediction: configurations where about half of the seeds fail, and which signal says which."""
