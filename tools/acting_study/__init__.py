"""The acting study: does acting on an alarm help, is it better than any update, and what does a false alarm do?"""
