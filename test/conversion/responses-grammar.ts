import { expect } from 'vitest'

// oxlint-disable-next-line typescript/no-explicit-any -- JSON of a stream
type Fields = Readonly<Record<string, any>>

/** The deltas, the event with their whole text, and the position of that text in the item. */
const TEXTS: Readonly<
  Record<string, readonly [done: string, whole: string, find: (item: Fields) => unknown]>
> = {
  'response.output_text.delta': ['response.output_text.done', 'text', (item) => item['content'][0].text],
  'response.reasoning_summary_text.delta': [
    'response.reasoning_summary_text.done',
    'text',
    (item) => item['summary'][0].text,
  ],
  'response.function_call_arguments.delta': [
    'response.function_call_arguments.done',
    'arguments',
    (item) => item['arguments'],
  ],
  'response.custom_tool_call_input.delta': [
    'response.custom_tool_call_input.done',
    'input',
    (item) => item['input'],
  ],
}
const TERMINAL: ReadonlySet<string> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
])

/**
 * Asserts that a client can read the stream of a response: events named as their data, numbered from 0
 * without gaps; items one after the other, each with `added` before its deltas and `done` after them, by the
 * same id; the deltas joined are the text in the last event of the text, in the finished item and in the
 * response; one final event. `complete` is whether it states success.
 */
export function checkResponsesStream(stream: string, complete: boolean): void {
  expect(stream.endsWith('\n\n')).toBe(true)
  const events = stream
    .slice(0, -2)
    .split('\n\n')
    .map((frame) => {
      const match = /^event: ([\w.]+)\ndata: ([^\n]*)$/.exec(frame)
      expect(match, frame).not.toBeNull()
      const data = JSON.parse(match?.[2] ?? '') as Fields
      expect(data['type']).toBe(match?.[1])
      return data
    })
  expect(events.map((event) => event['sequence_number'])).toEqual(events.map((_, i) => i))
  const types = events.map((event) => String(event['type']))
  expect(types.filter((type) => TERMINAL.has(type))).toEqual([types.at(-1)])
  if (types.length > 1) expect(types.slice(0, 2)).toEqual(['response.created', 'response.in_progress'])
  expect(types.filter((type) => type === 'response.created').length).toBeLessThanOrEqual(1)

  const items: Fields[] = []
  let open: { readonly item: Fields; text: string; whole: unknown } | undefined
  for (const event of events) {
    const type = String(event['type'])
    if (type === 'response.output_item.added') {
      expect(open).toBeUndefined()
      expect(event['output_index']).toBe(items.length)
      open = { item: event['item'], text: '', whole: undefined }
    } else if (type === 'response.output_item.done') {
      expect(event['output_index']).toBe(items.length)
      expect(event['item'].id).toBe(open?.item['id'])
      expect(event['item'].type).toBe(open?.item['type'])
      if (open?.whole !== undefined) expect(open.whole).toBe(open.text)
      items.push(event['item'])
      open = undefined
    } else if ('item_id' in event) {
      expect(event['item_id']).toBe(open?.item['id'])
      expect(event['output_index']).toBe(items.length)
      const [delta] = Object.entries(TEXTS).find(([, [done]]) => done === type) ?? []
      if (type in TEXTS && open) open.text += event['delta']
      if (delta && open) {
        const [, whole] = TEXTS[delta] as (typeof TEXTS)[string]
        open.whole = event[whole]
        expect(event[whole]).toBe(open.text)
      }
    }
  }
  checkItems(events, items)
  const last = events.at(-1) as Fields
  if (complete) {
    expect(open).toBeUndefined()
    expect(['response.completed', 'response.incomplete']).toContain(last['type'])
    expect(last['response'].status).toBe(String(last['type']).slice('response.'.length))
    expect(last['response'].output).toEqual(items)
  } else {
    expect(last['type']).toBe('response.failed')
    expect(last['response'].error).toEqual({ code: expect.any(String), message: expect.any(String) })
  }
  for (const event of events) if (event['response']) expect(event['response'].id).toBe(last['response'].id)
}

/**
 * Asserts that each item contains its joined deltas, and that ids are unique and differ from those of calls.
 */
function checkItems(events: readonly Fields[], items: readonly Fields[]): void {
  for (const [index, item] of items.entries()) {
    const own = events.filter((event) => event['output_index'] === index)
    for (const [delta, [, , find]] of Object.entries(TEXTS)) {
      const pieces = own.filter(({ type }) => type === delta).map((event) => event['delta'] as string)
      if (pieces.length > 0) expect(find(item)).toBe(pieces.join(''))
    }
    if (item['call_id'] !== undefined) expect(item['id']).not.toBe(item['call_id'])
  }
  const ids = items.map((item) => item['id'] as string)
  expect(new Set(ids).size).toBe(ids.length)
}
