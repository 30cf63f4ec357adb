import { expect, test } from 'vitest'
import { sendAtTurnEnd, notifyAfterTurn } from './turn-end.ts'

const nextTurn = (): Promise<void> => new Promise(setImmediate)

test('what departs in one turn of the event loop leaves at its end, in order, and once', async () => {
  const left: string[] = []
  const departing = (name: string): { depart(): void } => ({ depart: () => void left.push(name) })
  sendAtTurnEnd(departing('first'))
  sendAtTurnEnd(departing('second'))
  await Promise.resolve()
  sendAtTurnEnd(departing('third'))
  expect(left).toEqual([])
  await nextTurn()
  expect(left).toEqual(['first', 'second', 'third'])
  await nextTurn()
  expect(left).toHaveLength(3)
})

test('what is asked to depart by a departure leaves in the turn after', async () => {
  const left: string[] = []
  sendAtTurnEnd({
    send() {
      left.push('first')
      sendAtTurnEnd({ send: () => void left.push('second') })
    },
  })
  await nextTurn()
  expect(left).toEqual(['first'])
  await nextTurn()
  expect(left).toEqual(['first', 'second'])
})

test('what rests is told after the sockets were read once more, and before anything departs', async () => {
  const told: string[] = []
  notifyAfterTurn({ turnPassed: () => void told.push('rested') })
  sendAtTurnEnd({
    send() {
      told.push('departed')
      sendAtTurnEnd({ send: () => void told.push('departed a turn later') })
    },
  })
  await nextTurn()
  expect(told).toEqual(['departed'])
  await nextTurn()
  expect(told).toEqual(['departed', 'rested', 'departed a turn later'])
})

test('what begins to rest after the end of a turn is told no earlier than after the turn that follows', async () => {
  const told: string[] = []
  sendAtTurnEnd({ send: () => notifyAfterTurn({ turnPassed: () => void told.push('rested') }) })
  await nextTurn()
  await nextTurn()
  expect(told).toEqual([])
  await nextTurn()
  expect(told).toEqual(['rested'])
})
