"""Releases of torch: the list, environments with one of them, and the search for the first bad one."""
