import { expect, test } from 'vitest'
import { departSoon, restForATurn } from './turn-end.ts'

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

test('what rests is told after the sockets were read once more, and before anything departs', async () => {
  const told: string[] = []
  restForATurn({ rested: () => void told.push('rested') })
  departSoon({
    depart() {
      told.push('departed')
      departSoon({ depart: () => void told.push('departed a turn later') })
    },
  })
  await nextTurn()
  expect(told).toEqual(['departed'])
  await nextTurn()
  expect(told).toEqual(['departed', 'rested', 'departed a turn later'])
})

test('what begins to rest after the end of a turn is told no earlier than after the turn that follows', async () => {
  const told: string[] = []
  departSoon({ depart: () => restForATurn({ rested: () => void told.push('rested') }) })
  await nextTurn()
  await nextTurn()
  expect(told).toEqual([])
  await nextTurn()
  expect(told).toEqual(['rested'])
})
