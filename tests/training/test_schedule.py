from hypothesis import given
from hypothesis import strategies as st

from seqatt.training.schedule import (
    algorithm_1,
    cosine_schedule,
    narrow_first_phase,
    one_pass,
    retraining,
    split_evenly,
    takes_per_phase,
)


@given(total=st.integers(0, 10_000), parts=st.integers(1, 300))
def test_split_is_exact_and_even(total, parts):
    shares = split_evenly(total, parts)
    assert sum(shares) == total
    assert len(shares) == parts
    assert max(shares) - min(shares) <= 1


@given(k=st.integers(1, 200), data=st.data())
def test_takes_sum_to_k_for_every_number_of_features_per_phase(k, data):
    per_phase = data.draw(st.integers(1, k))
    assert sum(takes_per_phase(k, per_phase)) == k
    assert all(1 <= take <= per_phase for take in takes_per_phase(k, per_phase))


@given(
    k=st.integers(1, 100),
    steps=st.integers(0, 5000),
    warmup=st.floats(0, 0.9),
    replacement=st.integers(0, 20),
    surplus=st.integers(0, 100),
    data=st.data(),
)
def test_one_pass_uses_all_steps_and_ends_with_k_features(k, steps, warmup, replacement, surplus, data):
    per_phase = data.draw(st.integers(1, k))
    schedule = one_pass(
        k, steps, features_per_phase=per_phase, warmup=warmup, surplus=surplus, replacement=replacement
    )
    assert sum(phase.steps for phase in schedule) == steps
    selected = 0
    for phase in schedule:
        assert phase.drop <= selected
        selected += phase.take - phase.drop
        assert selected <= k + surplus
    assert selected == k


def test_the_first_selection_comes_after_training_with_attention():
    first = next(phase for phase in one_pass(10, 1000) if phase.take)
    assert first.steps > 0
    assert first.sees == "attended"


def test_algorithm_1_trains_a_new_model_for_all_steps_per_selection():
    schedule = algorithm_1(7, 100, features_per_phase=2)
    assert [phase.take for phase in schedule] == [2, 2, 2, 1]
    assert all(phase.reset_model and phase.steps == 100 for phase in schedule)


def test_the_cosine_schedule_lowers_the_learning_rate_from_1_to_nearly_0():
    schedule = cosine_schedule(1003)
    assert sum(phase.steps for phase in schedule) == 1003
    factors = [phase.lr_factor for phase in schedule]
    assert factors == sorted(factors, reverse=True)
    assert factors[0] == 1
    assert factors[-1] < 0.01


def test_a_surplus_is_dropped_by_models_that_see_the_selected_features_alone():
    schedule = one_pass(10, 1000, surplus=10)
    drops = [phase for phase in schedule if phase.drop]
    assert len(drops) == 10
    assert all(phase.sees == "selected" and phase.steps for phase in drops)


def test_a_network_that_evaluates_features_starts_anew_and_slows_down():
    schedule = retraining(100)
    assert [phase.reset_model for phase in schedule] == [True, False, False]
    assert [phase.lr_factor for phase in schedule] == [1.0, 0.3, 0.1]
    assert all(phase.sees == "selected" for phase in schedule)
    assert sum(phase.steps for phase in schedule) == 100


def test_a_wide_table_has_a_short_phase_that_selects_nothing_before_the_first_that_does():
    schedule = one_pass(4, 1000, surplus=4, replacement=1)
    warmup, narrowing, first, *others = narrow_first_phase(schedule)
    assert (warmup, first, *others) == schedule
    assert narrowing.narrows
    assert (narrowing.take, narrowing.drop, narrowing.sees) == (0, 0, "attended")
    assert narrowing.steps == round(first.steps / 4)


def test_a_schedule_of_short_phases_has_none():
    for steps, narrows in ((200, False), (1000, True)):
        schedule = one_pass(8, steps, warmup=0.0, surplus=8)
        assert any(phase.narrows for phase in narrow_first_phase(schedule)) == narrows
