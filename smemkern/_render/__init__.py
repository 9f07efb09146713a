"""How results look: document nodes, tables, and their text, terminal and HTML forms."""
