import { describe, expect, test } from 'vitest'
import { NO_USAGE } from '../../domain/usage.ts'
import type { UsageEntry, UsageFilter } from '../../domain/usage-entry.ts'
import { LiveReader } from './live-reader.ts'

const CALL: UsageEntry = {
  id: '0',
  endedMs: 1000,
  userId: 2,
  username: 'ann',
  tokenId: 3,
  tokenName: 'one',
  model: 'm',
  requestedModel: 'm',
  upstreamModel: 'm',
  channel: 'c',
  group: 'default',
  usage: NO_USAGE,
  quota: 1,
  priceVersion: 'v',
  durationMs: 5,
  firstByteMs: 4,
  stream: false,
  reason: 'complete',
  kind: 'chat',
}

function reading(filter: UsageFilter | null = {}) {
  const reader = new LiveReader(
    filter,
    ({ id }) => JSON.stringify({ id }),
    () => {},
  )
  const text = reader.text()
  let number = 0
  return {
    reader,
    offer: (count: number, nowMs: number, fields: Partial<UsageEntry> = {}) => {
      for (let n = 0; n < count; n += 1) reader.offer({ ...CALL, id: `${(number += 1)}`, ...fields }, nowMs)
    },
    /** The events that wait, as `call ID` and `gap NUMBER`. */
    read: async () => {
      const { value } = await text.next()
      return [...(value ?? '').matchAll(/event: (\w+)\n(?:id: .*\n)?data: (.*)\n\n/g)].map(
        ([, event, data = '']) => `${event} ${Object.values(JSON.parse(data)).join()}`,
      )
    },
  }
}
const calls = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, n) => `call ${from + n}`)

describe('a reader of live calls', () => {
  test('is sent 20 calls in a second, and how many it missed before the next one', async () => {
    const { reader, offer, read } = reading()
    expect(await read()).toEqual([])
    offer(25, 5000)
    reader.settle(5999)
    expect(await read()).toEqual(calls(1, 20))
    offer(1, 6000)
    expect(await read()).toEqual(['gap 5', 'call 26'])
  })

  test('is told of a gap as soon as calls would be sent again, though none comes', async () => {
    const { reader, offer, read } = reading()
    await read()
    offer(21, 5000)
    await read()
    reader.settle(6000)
    expect(await read()).toEqual(['gap 1'])
  })

  test('misses what it does not read', async () => {
    const { reader, offer, read } = reading()
    await read()
    for (const second of [5, 6, 7, 8]) offer(20, second * 1000)
    expect(await read()).toEqual(calls(1, 40))
    reader.settle(9000)
    expect(await read()).toEqual(['gap 40'])
  })

  test('counts an unknown number as unknown', async () => {
    const { reader, offer, read } = reading()
    await read()
    reader.miss(null)
    reader.miss(2)
    offer(1, 5000)
    expect(await read()).toEqual(['gap ', 'call 1'])
  })

  test.each([
    ['userId', 2, 9],
    ['username', 'ann', 'ada'],
    ['tokenName', 'one', 'two'],
    ['model', 'm', 'n'],
    ['channel', 'c', 'd'],
    ['group', 'default', 'vip'],
    ['id', '1', '2'],
    ['fromMs', 1000, 1001],
    ['beforeMs', 1001, 1000],
  ])('is sent the calls of its filter by %s alone', async (field, wanted, other) => {
    for (const [value, events] of [
      [wanted, ['call 1']],
      [other, []],
    ] as const) {
      const { reader, offer, read } = reading({ [field]: value })
      await read()
      offer(1, 5000)
      reader.end('over')
      expect(await read()).toEqual([...events, 'end over'])
    }
  })

  test('is sent nothing where no call can match', async () => {
    const { reader, offer, read } = reading(null)
    await read()
    offer(30, 5000)
    reader.end('over')
    expect(await read()).toEqual(['end over'])
  })

  test('leaves once, and is sent nothing afterwards', async () => {
    let left = 0
    const reader = new LiveReader(
      {},
      () => '{}',
      () => (left += 1),
    )
    const text = reader.text()
    await text.next()
    reader.leave()
    reader.end('late')
    reader.offer(CALL, 5000)
    expect(await text.next()).toEqual({ done: true, value: undefined })
    expect([left, reader.isOpen]).toEqual([1, false])
  })
})
