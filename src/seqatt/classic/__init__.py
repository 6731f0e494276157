"""Methods that train no network.

scikit-learn is imported where it is used: loading it takes a second that other methods need not wait for.
"""
