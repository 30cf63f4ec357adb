import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { heldBytes, requestMemory, usedUp } from '../../../test/samples/request-memory.ts'
import { LiveStreamClient } from './live-stream-client.ts'

function reading(memory = heldBytes()) {
  let left = 0
  const reader = new LiveStreamClient(() => (left += 1), memory)
  const text = reader.text()
  let number = 0
  return {
    reader,
    left: () => left,
    /** Sends this number of calls at once. */
    take: (count: number) => {
      const ids = Array.from({ length: count }, () => (number += 1))
      const events = ids.map((id) => `event: call\nid: ${id}\ndata: {"id":${id}}\n\n`)
      reader.take({ text: events.join(''), events: count, missed: count })
    },
    /** The waiting events, as `call ID` and `gap NUMBER`. */
    read: async () => {
      const { value } = await text.next()
      return [...(value ?? '').matchAll(/event: (\w+)\n(?:id: .*\n)?data: (.*)\n\n/g)].map(
        ([, event, data = '']) => `${event} ${Object.values(JSON.parse(data)).join()}`,
      )
    },
    next: () => text.next(),
  }
}
const calls = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, n) => `call ${from + n}`)

describe('a reader of live calls', () => {
  test('a reader of live calls gets all calls since its last read in one piece', async () => {
    const { take, read } = reading()
    expect(await read()).toEqual([])
    take(2)
    take(1)
    expect(await read()).toEqual(calls(1, 3))
  })

  test('a reader of live calls waits for its turn of the event loop, and then gets all calls that have arrived so far in one write', async () => {
    const turns: (() => void)[] = []
    const reader = new LiveStreamClient(() => {}, heldBytes(), { wait: (goOn) => void turns.push(goOn) })
    const text = reader.text()
    await text.next()
    const read: (string | void)[] = []
    const reading = text.next().then(({ value }) => read.push(value))
    for (const event of ['a', 'b']) reader.take({ text: event, events: 1, missed: 1 })
    await nextTurn()
    expect(read).toEqual([])
    expect(turns).toHaveLength(1)
    turns[0]?.()
    await reading
    expect(read).toEqual(['ab'])
  })

  test('a reader of live calls that is too slow misses calls, and is told how many before the next one', async () => {
    const { reader, take, read } = reading()
    await read()
    for (let n = 0; n < 4; n += 1) take(20)
    reader.settle()
    expect(await read()).toEqual(calls(1, 40))
    take(1)
    expect(await read()).toEqual(['gap 40', 'call 81'])
  })

  test('a reader of live calls is told of missed calls as soon as it reads again, even if no call arrives', async () => {
    const { reader, take, read } = reading()
    await read()
    for (let n = 0; n < 3; n += 1) take(20)
    await read()
    reader.settle()
    expect(await read()).toEqual(['gap 20'])
  })

  test('at most 40 keep-alive comments wait for a reader of live calls that does not read them', async () => {
    const { reader, next } = reading()
    await next()
    for (let n = 0; n < 100; n += 1) reader.comment()
    expect((await next()).value).toBe(':\n\n'.repeat(40))
  })

  test('a reader of live calls is sent a gap of unknown size if the number of missed calls is unknown', async () => {
    const { reader, take, read } = reading()
    await read()
    reader.miss(null)
    reader.miss(2)
    take(1)
    expect(await read()).toEqual(['gap ', 'call 1'])
  })

  test('a reader of live calls misses calls while its user has no memory left, and releases the memory that it held', async () => {
    const memory = requestMemory()
    const { reader, take, read } = reading(heldBytes(memory))
    await read()
    take(1)
    const giveBack = usedUp(memory)
    take(20)
    giveBack()
    take(1)
    expect(await read()).toEqual(['call 1', 'gap 20', 'call 22'])
    take(1)
    reader.leave()
    expect(memory.held).toBe(0)
  })

  test('a reader of live calls that has left is reported as gone once, and is sent nothing more', async () => {
    const { reader, take, next, left } = reading()
    await next()
    reader.leave()
    reader.end('late')
    take(1)
    expect(await next()).toEqual({ done: true, value: undefined })
    expect([left(), reader.isOpen]).toEqual([1, false])
  })
})
