"""The report of a selection or a comparison: facts as plain data, the page and the plots made from them."""
