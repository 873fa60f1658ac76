"""A bag that others were added to tells what one made at once does, whatever was asked of it before."""

from diag.facts import Facts, Origin, Python, Setting


def setting(name: str, scope: str) -> Setting:
    return Setting(origin=Origin(capture="x", scope=scope), name=name, value="1")


FIRST = [setting("A", ""), setting("B", "b"), setting("C", "a")]
MORE = [setting("D", "c"), setting("E", "b"), Python(origin=Origin(capture="x", scope=""), version="3.12.1")]


def test_scopes_stay_apart_when_facts_are_added():
    asked = Facts(FIRST)
    assert asked.scopes() == ("b", "a")
    for bag in (asked.adding(MORE), asked.adding(MORE[:1]).adding(MORE[1:]), Facts(FIRST).adding(MORE)):
        whole = Facts([*FIRST, *MORE])
        assert list(bag) == list(whole)
        assert bag.scopes() == whole.scopes() == ("b", "a", "c")
        for scope in whole.scopes():
            assert set(map(repr, bag.within(scope))) == set(map(repr, whole.within(scope)))
            assert bag.own(scope) == whole.own(scope)
    assert asked.scopes() == ("b", "a")
    assert len(asked.within("b")) == 2
