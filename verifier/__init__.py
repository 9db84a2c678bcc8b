"""Verifier."""
