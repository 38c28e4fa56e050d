"""Tests of faults: killed processes, full disks and missing inputs must leave complete files and lose no data."""
