import { describe, expect, test } from 'vitest'
import { heldBytes, requestMemory, usedUp } from '../../../test/request-memory.ts'
import { LiveReader } from './live-reader.ts'
import { LiveView } from './live-view.ts'

function opened(view: LiveView, lastId?: string) {
  const reader = new LiveReader(() => {}, heldBytes())
  view.add(reader, lastId)
  const text = reader.text()
  /** The waiting events, as `call ID` and `gap NUMBER`. */
  return async (): Promise<string[]> => {
    const { value } = await text.next()
    return [...(value ?? '').matchAll(/event: (\w+)\n(?:id: .*\n)?data: (.*)\n\n/g)].map(
      ([, event, data = '']) => `${event} ${Object.values(JSON.parse(data)).join()}`,
    )
  }
}
const turn = (from: number, to: number, missed: number | null = 0) => ({
  calls: Array.from({ length: to - from + 1 }, (_, n) => ({
    id: String(from + n),
    text: `{"id":${from + n}}`,
  })),
  missed,
})
const NOTHING = { calls: [], missed: 0 }
const calls = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, n) => `call ${from + n}`)

describe('a view of live calls', () => {
  test('a live view shows all its readers 20 calls in a second, and how many they missed before the next one', async () => {
    const view = new LiveView(heldBytes())
    const readers = [opened(view), opened(view)]
    for (const read of readers) expect(await read()).toEqual([])
    view.show(turn(1, 15), 5000)
    // As if other processes settled calls too.
    view.show(turn(16, 30, 5), 5500)
    for (const read of readers) expect(await read()).toEqual(calls(1, 20))
    view.show(turn(31, 31), 6000)
    for (const read of readers) expect(await read()).toEqual(['gap 15', 'call 31'])
  })

  test('a live view reports a gap as soon as calls would be shown again, even if none arrives', async () => {
    const view = new LiveView(heldBytes())
    const read = opened(view)
    await read()
    view.show(turn(1, 21), 5000)
    await read()
    view.show(NOTHING, 6000)
    expect(await read()).toEqual(['gap 1'])
  })

  test('a live view sends a new reader no calls from before it', async () => {
    const view = new LiveView(heldBytes())
    const before = opened(view)
    await before()
    view.show(turn(1, 20, 5), 5000)
    await before()
    const read = opened(view)
    await read()
    expect(await before()).toEqual(['gap 5'])
    view.show(turn(26, 26), 6000)
    expect([await before(), await read()]).toEqual([['call 26'], ['call 26']])
  })

  test('a live view sends a returning reader what it has missed, up to 20 events at once', async () => {
    const view = new LiveView(heldBytes())
    view.show(turn(1, 3, 7), 5000)
    view.show(turn(4, 22), 6000)
    view.show(turn(23, 25), 7000)
    const read = opened(view, '2')
    await read()
    expect(await read()).toEqual(['call 3', 'gap 7', ...calls(4, 21)])
    view.show(NOTHING, 8000)
    expect(await read()).toEqual(['gap 4'])
  })

  test('a live view does not know what a reader missed whose last call it no longer has', async () => {
    const view = new LiveView(heldBytes())
    for (let second = 0; second <= 10; second += 1)
      view.show(turn(second * 20 + 1, second * 20 + 20), second * 1000)
    for (const [lastId, events] of [
      ['20', ['gap ']],
      ['elsewhere', ['gap ']],
      ['219', ['call 220']],
    ] as const) {
      const read = opened(view, lastId)
      await read()
      view.show(NOTHING, 60_000)
      expect(await read()).toEqual(events)
    }
  })

  test('a live view keeps only its newest events where its user has no memory left for more', async () => {
    const memory = requestMemory()
    const view = new LiveView(heldBytes(memory))
    view.show(turn(1, 3), 5000)
    usedUp(memory)
    view.show(turn(4, 5), 6000)
    for (const [lastId, events] of [
      ['2', ['gap ']],
      ['4', ['call 5']],
    ] as const) {
      const read = opened(view, lastId)
      await read()
      view.show(NOTHING, 60_000)
      expect(await read()).toEqual(events)
    }
  })
})
