"""The methods that need sums over the rows of files and no training: one pass, the same result for all seeds."""

from __future__ import annotations

from functools import partial

from seqatt.algorithms.linear import LINEAR_METHODS, rule_of
from seqatt.algorithms.registry import Plan, register_files
from seqatt.algorithms.request import SelectionRequest
from seqatt.algorithms.sums.accumulate import accumulate
from seqatt.algorithms.sums.least_squares import GramAccumulator
from seqatt.algorithms.sums.pair_counts import PairCounts
from seqatt.checkpoints.run_description import describe_run
from seqatt.data.files.file_data import FileData
from seqatt.data.files.shards import count_shards
from seqatt.progress import Advance
from seqatt.trace import Trace


@register_files("cmim")
def cmim_on_files(request: SelectionRequest, plan: Plan, advance: Advance) -> list[Trace]:
    sums = PairCounts(
        _data(request), request.options, request.context.file_options, request.kept, request.quotas
    )
    return _accumulate(request, "cmim", sums, advance)


def select_linear_on_files(
    request: SelectionRequest, plan: Plan, advance: Advance, *, method: str
) -> list[Trace]:
    rule = rule_of(method, request.options)
    gram = GramAccumulator(_data(request), rule, request.context.file_options.max_categories)
    return _accumulate(request, "least squares", gram, advance)


for _name in LINEAR_METHODS:
    register_files(_name)(partial(select_linear_on_files, method=_name))


def _accumulate(
    request: SelectionRequest, name: str, sums: PairCounts | GramAccumulator, advance: Advance
) -> list[Trace]:
    """Accumulate sums over all rows and select from them. Methods with the same sums can continue each other."""
    data, context = _data(request), request.context
    shards = count_shards(context.file_options.shards, context.ranks.size)
    resolved = context.file_options.to_settings() | sums.settings | {"shards": shards}
    run = describe_run(data, name, 0, [], resolved)
    settings = accumulate(
        data,
        context.file_options,
        shards,
        sums,
        run,
        context.ranks,
        context.checkpoint_options,
        advance,
    )
    trace = sums.select(request.k)
    trace.settings |= settings | sums.settings | {"shards": shards}
    return [trace] * len(request.seeds)


def _data(request: SelectionRequest) -> FileData:
    assert isinstance(request.data, FileData)
    return request.data
