"""The functions of the public interface: ``select``, ``evaluate``, ``marginal_gains`` and their options."""
