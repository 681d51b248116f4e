"""The calculator: what is asked (form, address, config), and what is answered (answer, remedies, spot), in words."""
