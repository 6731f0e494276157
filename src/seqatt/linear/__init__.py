"""Exact feature selection for least squares: three algorithms that the theory says are one."""

from seqatt.linear.gram import Gram
from seqatt.linear.omp import omp
from seqatt.linear.path import Path
