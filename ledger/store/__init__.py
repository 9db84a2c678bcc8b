"""Stores of records: bytes, and nothing that the bytes mean (spec §7.1)."""
