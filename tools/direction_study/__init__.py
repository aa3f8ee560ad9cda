"""The direction study: the boundary study's main runs once more, watched for how their updates point."""
