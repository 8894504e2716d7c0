"""The commands on a board, as plain data."""

from __future__ import annotations

from weft.kernels import board as b
from weft.kernels.board import Board
from weft.model.events import CancelTask, Command, DropTransfer, SendItem, StartTask, WakeAt


def taken_off(board: Board) -> list[Command]:
    """Read the commands off the board."""
    n = int(board.counts[b.N_COMMANDS])
    if n == 0:
        return []
    said = board.commands[: 2 * n].tolist()
    board.counts[b.N_COMMANDS] = 0
    return [_command(board, said[2 * k], said[2 * k + 1]) for k in range(n)]


def _command(board: Board, kind: int, which: int) -> Command:
    now = float(board.clock[0])
    if kind == b.START:
        task, p = int(board.attempt_task[which]), int(board.attempt_on[which])
        return StartTask(which, task, p, now)
    if kind == b.SEND:
        item = int(board.transfer_item[which])
        source, target = int(board.transfer_from[which]), int(board.transfer_to[which])
        return SendItem(which, item, source, target, now)
    if kind == b.WAKE_AT:
        return WakeAt(float(board.wake[0]))
    return CancelTask(which, now) if kind == b.CANCEL else DropTransfer(which, now)
