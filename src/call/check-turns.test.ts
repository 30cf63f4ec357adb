import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { CheckTurns } from './check-turns.ts'

/** Work that takes longer than a turn. */
function longWork(): void {
  const endMs = performance.now() + 1
  while (performance.now() < endMs);
}

/** Begins checks of a user, each of many pieces. `ran` is told of each piece. */
function begin(owner: number, count: number, ran: (check: number) => void, isGone: () => boolean): void {
  for (let check = 0; check < count; check += 1) {
    const turns = new CheckTurns(owner, isGone)
    const piece = (): string => {
      ran(check)
      longWork()
      return ''
    }
    void turns.checkLong('x'.repeat(1_000_000), piece).catch(() => {})
  }
}

test('of all long checks together one has its turn in each turn of the event loop', async () => {
  let isOver = false
  let pieces = 0
  begin(
    1,
    20,
    () => (pieces += 1),
    () => isOver,
  )
  await nextTurn()
  const perTurn: number[] = []
  for (let turn = 0; turn < 40; turn += 1) {
    const before = pieces
    await nextTurn()
    perTurn.push(pieces - before)
  }
  isOver = true
  expect(Math.max(...perTurn)).toBeLessThanOrEqual(1)
  expect(pieces).toBeGreaterThan(40)
})

test('the users have their turns one after another, however many checks each has', async () => {
  let isOver = false
  const pieces = [0, 0]
  begin(
    2,
    20,
    () => (pieces[0]! += 1),
    () => isOver,
  )
  begin(
    3,
    1,
    () => (pieces[1]! += 1),
    () => isOver,
  )
  const atFirst = [...pieces]
  for (let turn = 0; turn < 40; turn += 1) await nextTurn()
  isOver = true
  const [ofOne, ofOther] = pieces.map((count, user) => count - (atFirst[user] as number))
  expect(Math.abs((ofOne as number) - (ofOther as number))).toBeLessThanOrEqual(1)
})

test('a check that takes less than a turn waits for none, whatever others wait', async () => {
  let isOver = false
  begin(
    4,
    20,
    () => {},
    () => isOver,
  )
  // The time is given, because a busy machine may interrupt the shortest check.
  expect(new CheckTurns(5, () => false).note(0.1)).toBeUndefined()
  isOver = true
})
