"""Bytes into columns: items cut out of raw bytes, and taken apart by the template they fit."""
