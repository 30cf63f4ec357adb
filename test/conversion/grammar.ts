import { expect } from 'vitest'

type Fields = Readonly<Record<string, unknown>>

/**
 * The frames of a stream that the gateway wrote: with its own line ends, at most one event line, and one data
 * line.
 */
function framesOf(text: string): { readonly event: string | undefined; readonly data: string }[] {
  if (text === '') return []
  expect(text.endsWith('\n\n')).toBe(true)
  return text
    .slice(0, -2)
    .split('\n\n')
    .map((frame) => {
      const match = /^(?:event: (\w+)\n)?data: ([^\n]*)$/.exec(frame)
      expect(match, frame).not.toBeNull()
      return { event: match?.[1], data: match?.[2] ?? '' }
    })
}

/**
 * Asserts that a messages client can read the stream: one message_start, blocks one after the other and
 * numbered without gaps, deltas of the kind of their block and within it, one message_delta, one message_stop
 * at the end; or an error at the end. `complete` says which of the two is expected.
 */
export function checkMessagesStream(text: string, complete: boolean): void {
  let next = 0
  let open: string | undefined
  const seen: string[] = []
  const frames = framesOf(text)
  for (const { event, data } of frames) {
    const fields = JSON.parse(data) as Fields
    const type = String(fields['type'])
    expect(event).toBe(type)
    expect(seen.at(-1)).not.toBe('message_stop')
    expect(seen.at(-1)).not.toBe('error')
    if (type === 'content_block_start') {
      expect(open).toBeUndefined()
      expect(fields['index']).toBe(next)
      open = String((fields['content_block'] as Fields)['type'])
    } else if (type === 'content_block_delta') {
      expect(fields['index']).toBe(next)
      expect(DELTAS[open ?? '']).toContain((fields['delta'] as Fields)['type'])
    } else if (type === 'content_block_stop') {
      expect(open).toBeDefined()
      expect(fields['index']).toBe(next++)
      open = undefined
    } else if (type === 'message_delta') expect(open).toBeUndefined()
    if (type !== 'error') expect(seen.length === 0).toBe(type === 'message_start')
    if (type !== 'ping' && !type.startsWith('content_block')) seen.push(type)
  }
  if (complete) expect(seen).toEqual(['message_start', 'message_delta', 'message_stop'])
  else {
    expect(seen.at(-1)).toBe('error')
    expect(seen).not.toContain('message_stop')
  }
}

const DELTAS: Readonly<Record<string, readonly string[]>> = {
  text: ['text_delta', 'citations_delta'],
  thinking: ['thinking_delta', 'signature_delta'],
  tool_use: ['input_json_delta'],
  server_tool_use: ['input_json_delta'],
}

/**
 * Asserts that a chat client can read the stream: the role first and once, calls numbered from 0 without gaps
 * and introduced by id and name, one finish reason with nothing after it, one [DONE] at the end; or an error
 * at the end.
 */
export function checkChatStream(text: string, complete: boolean): void {
  const frames = framesOf(text)
  const last = frames.at(-1)?.data
  const chunks = frames.slice(0, -1).map(({ data }) => JSON.parse(data) as Fields)
  expect(frames.every(({ event }) => event === undefined)).toBe(true)
  if (complete) expect(last).toBe('[DONE]')
  else
    expect(JSON.parse(last ?? '')).toMatchObject({
      error: { type: expect.any(String), message: expect.any(String) },
    })
  let calls = 0
  let finishes = 0
  let isFirst = true
  for (const chunk of chunks) {
    const [choice] = chunk['choices'] as Fields[]
    if (!choice) {
      expect(finishes).toBe(1)
      continue
    }
    const delta = choice['delta'] as Fields
    expect(finishes).toBe(0)
    expect('role' in delta).toBe(isFirst)
    isFirst = false
    if (choice['finish_reason'] !== null) finishes++
    for (const call of (delta['tool_calls'] ?? []) as Fields[]) {
      const index = call['index'] as number
      const isNew = index === calls
      expect(typeof call['id'] === 'string').toBe(isNew)
      if (isNew) calls++
      else expect(index).toBeLessThan(calls)
    }
  }
  if (complete) expect(finishes).toBe(1)
}

export const GRAMMARS = { chat: checkChatStream, messages: checkMessagesStream } as const
