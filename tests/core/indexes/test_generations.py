"""Shapes of generations, as text and back. Their changes are tested with the filters of redis_kit.bloom."""

from redis_kit.core.indexes.generations import Generation, Shape


def test_shape_is_read_as_it_was_written():
    shapes = [Shape(), Shape((Generation("a", 2), Generation("b"))), Shape((), Generation("c", 3))]
    assert [Shape.parse(str(shape)) for shape in shapes] == shapes


def test_one_generation_grows():
    shape = Shape((Generation("a", 2), Generation("b")), Generation("c"))
    assert str(shape.grown("b")) == "a:2 b:2 +c:1"
    assert str(shape.grown("c")) == "a:2 b:1 +c:2"
