import { expect, test } from 'vitest'
import { sendAtTurnEnd, notifyAfterTurn } from './event-loop-turn.ts'

const nextTurn = (): Promise<void> => new Promise(setImmediate)

test('requests to upstreams that are made in one turn of the event loop are sent at its end, in order, and each only once', async () => {
  const sent: string[] = []
  const request = (name: string): { send(): void } => ({ send: () => void sent.push(name) })
  sendAtTurnEnd(request('first'))
  sendAtTurnEnd(request('second'))
  await Promise.resolve()
  sendAtTurnEnd(request('third'))
  expect(sent).toEqual([])
  await nextTurn()
  expect(sent).toEqual(['first', 'second', 'third'])
  await nextTurn()
  expect(sent).toHaveLength(3)
})

test('a request that is queued while another is sent is sent in the next turn of the event loop', async () => {
  const sent: string[] = []
  sendAtTurnEnd({
    send() {
      sent.push('first')
      sendAtTurnEnd({ send: () => void sent.push('second') })
    },
  })
  await nextTurn()
  expect(sent).toEqual(['first'])
  await nextTurn()
  expect(sent).toEqual(['first', 'second'])
})

test("the notice that a turn of the event loop has passed comes after the turn's reads and before queued requests are sent", async () => {
  const events: string[] = []
  notifyAfterTurn({ turnPassed: () => void events.push('turn passed') })
  sendAtTurnEnd({
    send() {
      events.push('sent')
      sendAtTurnEnd({ send: () => void events.push('sent a turn later') })
    },
  })
  await nextTurn()
  expect(events).toEqual(['sent'])
  await nextTurn()
  expect(events).toEqual(['sent', 'turn passed', 'sent a turn later'])
})

test('a connection used at the end of an event loop turn is notified of a passed turn only after the following turn', async () => {
  const events: string[] = []
  sendAtTurnEnd({ send: () => notifyAfterTurn({ turnPassed: () => void events.push('turn passed') }) })
  await nextTurn()
  await nextTurn()
  expect(events).toEqual([])
  await nextTurn()
  expect(events).toEqual(['turn passed'])
})
