"""VAT: what is charged, to whom, at which rate, and the proof behind it.

Rules without Django: `territories`, `special_areas`, `rates`, `vat_ids`, `company_names`, `decide`, `amounts`. The outside:
`vies`. Rows: `record` (decisions), `details` (what an organisation tells), `check_vat_ids` (asking VIES), `queries`.
"""
