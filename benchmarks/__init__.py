"""Figures of speed and size; nothing here is a test."""
