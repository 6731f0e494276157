from hypothesis import given
from hypothesis import strategies as st

from seqatt.training.schedule import algorithm_1, cosine_schedule, one_pass, split_evenly, takes_per_phase


@given(total=st.integers(0, 10_000), parts=st.integers(1, 300))
def test_split_is_exact_and_even(total, parts):
    shares = split_evenly(total, parts)
    assert sum(shares) == total
    assert len(shares) == parts
    assert max(shares) - min(shares) <= 1


@given(k=st.integers(1, 200), data=st.data())
def test_takes_add_up_to_k_for_every_number_a_phase(k, data):
    each = data.draw(st.integers(1, k))
    assert sum(takes_per_phase(k, each)) == k
    assert all(1 <= take <= each for take in takes_per_phase(k, each))


@given(
    k=st.integers(1, 100),
    steps=st.integers(0, 5000),
    warmup=st.floats(0, 0.9),
    replacement=st.integers(0, 20),
    surplus=st.integers(0, 100),
    data=st.data(),
)
def test_one_pass_spends_its_budget_and_ends_with_k(k, steps, warmup, replacement, surplus, data):
    each = data.draw(st.integers(1, k))
    schedule = one_pass(
        k, steps, features_per_phase=each, warmup=warmup, surplus=surplus, replacement=replacement
    )
    assert sum(phase.steps for phase in schedule) == steps
    held = 0
    for phase in schedule:
        assert phase.drop <= held
        held += phase.take - phase.drop
        assert held <= k + surplus
    assert held == k


def test_the_first_choice_comes_after_attended_training():
    first = next(phase for phase in one_pass(10, 1000) if phase.take)
    assert first.steps > 0
    assert first.sees == "attended"


def test_algorithm_1_trains_a_fresh_model_in_full_for_every_choice():
    schedule = algorithm_1(7, 100, features_per_phase=2)
    assert [phase.take for phase in schedule] == [2, 2, 2, 1]
    assert all(phase.fresh and phase.steps == 100 for phase in schedule)


def test_cooling_ends_slower_than_it_began():
    schedule = cosine_schedule(1003)
    assert sum(phase.steps for phase in schedule) == 1003
    rates = [phase.rate for phase in schedule]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == 1
    assert rates[-1] < 0.01
