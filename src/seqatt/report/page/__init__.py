"""The page of a report: one HTML file made from facts. It computes nothing."""
