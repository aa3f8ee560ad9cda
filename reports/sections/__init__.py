"""The sections of a report: each turns a `Study` into sentences and tables, with every number in the ledger."""
