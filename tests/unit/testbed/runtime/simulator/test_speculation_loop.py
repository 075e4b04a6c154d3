from testbed.runtime.simulator.speculation_loop import Judgement, Proposal, SpeculativeAnswer, speculate

END = 0
STORY = (11, 12, 13, 14, 15, 16, END)


def target(tokens: tuple[int, ...], proposal: Proposal | None, remaining: int) -> Judgement:
    known = len(tokens) - 1
    if proposal is None:
        return Judgement(STORY[known : known + remaining])
    right = 0
    while proposal.tokens[right : right + 1] == STORY[known + right : known + right + 1] != ():
        right += 1
    return Judgement(STORY[known : known + right + 1], drafted=len(proposal.tokens), accepted=right)


def tell(*, max_tokens: int = 20, wrong_at: int | None = None) -> SpeculativeAnswer:
    def draft(tokens: tuple[int, ...], count: int) -> Proposal:
        known = len(tokens) - 1
        proposed = (*STORY, *((END,) * count))[known : known + count]
        return Proposal(tuple(99 if known + place == wrong_at else word for place, word in enumerate(proposed)))

    return speculate((1,), max_tokens=max_tokens, num_draft_tokens=2, end_id=END, draft=draft, target=target)


def test_the_answer_is_the_targets_whatever_the_draft_proposes() -> None:
    assert tell(wrong_at=1).tokens == tell().tokens == STORY


def test_statistics_are_of_the_last_target_call_and_totals_of_all() -> None:
    answer = tell(wrong_at=1)
    assert (answer.drafted, answer.total_drafted, answer.total_accepted) == (2, 6, 5)


def test_a_good_draft_saves_target_calls() -> None:
    assert tell().target_calls == 3


def test_the_limit_of_new_tokens_is_kept() -> None:
    assert tell(max_tokens=4).tokens == STORY[:4]
