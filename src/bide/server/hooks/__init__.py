"""Webhooks, in and out."""
