"""Faults: processes killed at any moment, full disks, vanished inputs. Nothing half, nothing of the user's lost."""
