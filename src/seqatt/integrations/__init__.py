"""Callbacks for the trainers of other libraries, each in a module that needs that library."""
