"""Communication read from programs written by hand, in every form that XLA writes it."""

import pytest

from attention_jax.devices.ahead_of_time.collectives import Communication, find_exchanges

MESH = {"data": 2, "fsdp": 2, "tensor": 2}
PROGRAM = """\
HloModule jit_step, is_scheduled=true

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  ROOT %sum = f32[] add(%x, %y)
}

%body (carry: (s32[], f32[4])) -> (s32[], f32[4]) {
  %carry = (s32[], f32[4]) parameter(0)
  %part = f32[4]{0} get-tuple-element(%carry), index=1
  %inner = f32[4]{0} all-reduce(%part), channel_id=2, replica_groups=GROUPS, to_apply=%add
  ROOT %next = (s32[], f32[4]) tuple(%carry, %inner)
}

%condition (carry: (s32[], f32[4])) -> pred[] {
  %carry = (s32[], f32[4]) parameter(0)
  ROOT %more = pred[] constant(true)
}

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %loop = (s32[], f32[4]{0:T(8,128)}) while(%p), condition=%condition, body=%body, TRIPS
  ROOT %out = f32[4]{0} get-tuple-element(%loop), index=1
}
""".replace("TRIPS", 'backend_config={"known_trip_count":{"n":"5"}}')


def in_entry(line: str) -> str:
    """A program of one instruction."""
    return f"HloModule m\n\nENTRY %main (p: f32[4]) -> f32[4] {{\n  {line}\n}}\n"


@pytest.mark.parametrize(
    ("groups", "axes"),
    [
        ("{{0,1},{2,3},{4,5},{6,7}}", ("tensor",)),
        ("{{0,4},{1,5},{2,6},{3,7}}", ("data",)),
        ("[4,2]<=[8]", ("tensor",)),
        ("[4,2]<=[2,2,2]T(0,2,1)", ("fsdp",)),
        ("[2,4]<=[4,2]T(1,0)", ("data", "fsdp")),
        ("[1,8]<=[8]", ("data", "fsdp", "tensor")),
        ("{}", ("data", "fsdp", "tensor")),
        ("mesh['a'=4,'b'=2] {'b'}", ("tensor",)),
        ("mesh['a'=4,'b'=2] {'a'}", ("data", "fsdp")),
        ("mesh['a'=4,'b'=2] {'a':(1)2}", ("data",)),
        ("mesh['a'=4,'b'=2] {'a':(2)2}", ("fsdp",)),
        ("mesh['a'=1,'b'=2,'c'=4], device_ids=([2,2,2]T(1,0,2)) {'b'}", ("fsdp",)),
        ("mesh['a'=2,'b'=4], device_ids=(0,2,4,6,1,3,5,7) {'a'}", ("tensor",)),
    ],
)
def test_axes_are_read_from_every_form_of_groups(groups, axes):
    line = f"%a = f32[4]{{0}} all-reduce(%p), channel_id=1, replica_groups={groups}, to_apply=%add"
    (found,) = find_exchanges(in_entry(line), MESH)
    assert (found.axes, found.group) == (axes, 2 ** len(axes))


def test_loops_are_counted_as_often_as_they_run():
    (found,) = find_exchanges(PROGRAM.replace("GROUPS", "[4,2]<=[8]"), MESH)
    # 5 x 16 bytes; with two devices an all-reduce sends 2 (2-1)/2 = 1 times its bytes.
    assert found == Communication("all-reduce", ("tensor",), 2, 5, 80, 80.0)


def test_collectives_beside_other_work_are_counted_once():
    lines = """%s = (f32[4]{0}, f32[16]{0}) all-gather-start(%p), replica_groups=[2,4]<=[8]
  %d = f32[16]{0} all-gather-done(%s)
  %f = (f32[2]{0}, bf16[6]{0}) all-reduce-done((f32[2]{0}, bf16[6]{0}) %e)
  %e = (f32[2]{0}, bf16[6]{0}) all-reduce-start(%p, %p), replica_groups={{0,1,2,3},{4,5,6,7}}"""
    gather, reduce = sorted(find_exchanges(in_entry(lines), MESH), key=lambda each: each.kind)
    axes = ("fsdp", "tensor")
    assert gather == Communication("all-gather", axes, 4, 1, 64, 48.0)  # 3/4 of 64 bytes
    assert reduce == Communication("all-reduce", axes, 4, 1, 20, 30.0)  # 2 x 3/4 of 4 x 2 + 2 x 6


@pytest.mark.parametrize(
    ("line", "sent"),
    [
        ("%a = f32[8]{0} reduce-scatter(%p), replica_groups=[2,4]<=[8]", 96),  # 3/4 of 128
        ("%a = f32[8]{0} all-to-all(%p), replica_groups=[2,4]<=[8]", 24),
        ("%a = f32[8]{0} collective-permute(%p), source_target_pairs={{0,0},{0,2},{1,3}}", 32),
    ],
)
def test_bytes_on_a_link(line, sent):
    (found,) = find_exchanges(in_entry(line), MESH)
    assert found.link_bytes == sent


def test_what_stays_on_a_device_is_no_communication():
    assert not find_exchanges(
        in_entry("%a = f32[8]{0} all-reduce(%p), replica_groups={{0},{1},{2},{3}}"), MESH
    )


@pytest.mark.parametrize(
    ("kind", "size"),
    [("pred[3]", 3), ("s4[3]", 2), ("u32[]", 4), ("f8e4m3fn[2,2]", 4), ("c64[2]", 16)],
)
def test_sizes_of_types(kind, size):
    line = f"%a = {kind}{{0}} all-gather(%p), replica_groups=[1,8]<=[8]"
    (found,) = find_exchanges(in_entry(line), MESH)
    assert found.result_bytes == size
