import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { PacedRefusals } from './refusals-in-turn.ts'

test('refusals are sent at once; of very many, some at the end of the turn, and in the next turn at once again', async () => {
  const refusals = new PacedRefusals()
  for (let round = 0; round < 2; round++) {
    let said = 0
    for (let i = 1; i <= 700; i++) {
      refusals.say(() => (said += 1))
      expect(said).toBe(Math.min(i, 500))
    }
    await turn()
    expect(said).toBe(700)
  }
})

test('refusals that arise while the last ones of a turn are sent are sent, too', async () => {
  const refusals = new PacedRefusals()
  let again = 0
  for (let i = 0; i < 501; i++) refusals.say(() => refusals.say(() => (again += 1)))
  await turn()
  await turn()
  expect(again).toBe(501)
})
