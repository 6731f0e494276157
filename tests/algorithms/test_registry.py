"""The catalogue of methods agrees with the modules that hold them."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import seqatt.algorithms
from seqatt.algorithms import registry


def test_the_module_of_every_method_registers_its_functions():
    for method in registry.all_methods().values():
        assert callable(method.select)
        assert callable(method.plan)


def test_no_module_registers_a_method_that_the_catalogue_lacks():
    for module in pkgutil.walk_packages(seqatt.algorithms.__path__, "seqatt.algorithms."):
        import_module(module.name)
    assert set(registry._FUNCTIONS) == set(registry.all_methods())
    assert set(registry._ON_FILES) <= set(registry.all_methods())
