import { expect, test } from 'vitest'
import { departSoon } from './departures.ts'

const nextTurn = (): Promise<void> => new Promise(setImmediate)

test('what departs in one turn of the event loop leaves at its end, in order, and once', async () => {
  const left: string[] = []
  const departing = (name: string): { depart(): void } => ({ depart: () => void left.push(name) })
  departSoon(departing('first'))
  departSoon(departing('second'))
  await Promise.resolve()
  departSoon(departing('third'))
  expect(left).toEqual([])
  await nextTurn()
  expect(left).toEqual(['first', 'second', 'third'])
  await nextTurn()
  expect(left).toHaveLength(3)
})

test('what is asked to depart by a departure leaves in the turn after', async () => {
  const left: string[] = []
  departSoon({
    depart() {
      left.push('first')
      departSoon({ depart: () => void left.push('second') })
    },
  })
  await nextTurn()
  expect(left).toEqual(['first'])
  await nextTurn()
  expect(left).toEqual(['first', 'second'])
})
