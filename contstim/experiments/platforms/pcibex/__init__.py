"""PCIbex Farm.

export    a table of items with a PennController 2 script
reading   its results
"""
