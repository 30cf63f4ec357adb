import { describe, expect, test } from 'vitest'
import { ChatTap } from './chat/native/tap.ts'
import { MessagesTap } from './messages/native/tap.ts'
import type { StreamTap } from './sse/stream-tap.ts'

const LONG = 'word '.repeat(16_000)
const crlf = (text: string): string => text.replaceAll('\n', '\r\n')
const messagesFrame = (data: { readonly type: string; readonly [name: string]: unknown }): string =>
  crlf(`event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`)

interface Case {
  readonly tap: () => StreamTap
  /** Bytes before the large event. */
  readonly head: string
  readonly large: string
  readonly last: string
}

const CASES: Record<string, Case> = {
  chat: {
    tap: () => new ChatTap({ swallowUsage: false }),
    head: '',
    large: crlf(
      `data: ${JSON.stringify({
        choices: [{ index: 0, delta: { content: LONG }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 100, completion_tokens: 20 },
      })}\n\n`,
    ),
    last: crlf('data: [DONE]\n\n'),
  },
  'chat, usage alone that was asked for by the caller': {
    tap: () => new ChatTap({ swallowUsage: false }),
    head: crlf('data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n'),
    large: crlf(
      `data: ${JSON.stringify({ choices: [], pad: LONG, usage: { prompt_tokens: 100, completion_tokens: 20 } })}\n\n`,
    ),
    last: crlf('data: [DONE]\n\n'),
  },
  messages: {
    tap: () => new MessagesTap(),
    head: messagesFrame({
      type: 'message_start',
      message: { id: 'msg_1', content: [], usage: { input_tokens: 100, output_tokens: 1 } },
    }),
    large: messagesFrame({
      type: 'message_delta',
      delta: { stop_reason: 'end_turn' },
      pad: LONG,
      usage: { output_tokens: 20 },
    }),
    last: messagesFrame({ type: 'message_stop' }),
  },
}

/** The forwarded bytes and the facts if the chunks are cut at these offsets. */
function watched({ tap: made, head, large, last }: Case, ...cuts: number[]): object {
  const tap = made()
  const bytes = Buffer.from(head + large + last)
  const forwarded: Buffer[] = []
  for (const [i, from] of [0, ...cuts].entries()) {
    const { forward } = tap.push(Buffer.from(bytes.subarray(from, cuts[i] ?? bytes.length)))
    if (forward) forwarded.push(Buffer.from(forward))
  }
  const { ending, cutBytes, complete } = tap.end()
  const { usage, done, sawFinish, error, emittedBytes, contentFrames, isMidEvent } = tap
  return {
    goesOn: Buffer.concat(forwarded).equals(Buffer.from(head + large)),
    ending: ending.toString(),
    cutBytes,
    complete,
    usage,
    done,
    sawFinish,
    error,
    emittedBytes,
    contentFrames,
    isMidEvent,
  }
}

describe.each(Object.entries(CASES))('a large event whose lines end in CR LF (%s)', (_, one) => {
  const start = one.head.length
  const end = start + one.large.length

  test('a large stream event whose lines end with CR LF is forwarded alone in one piece', () => {
    expect(watched(one)).toMatchObject({
      goesOn: true,
      ending: one.last,
      complete: true,
      done: true,
      sawFinish: true,
      usage: { input: 100, output: 20 },
    })
  })

  test('a large stream event whose lines end with CR LF is forwarded wherever the network cuts it near its end', () => {
    const whole = watched(one)
    for (let at = end - 8; at <= end + 8; at++) {
      expect(watched(one, at), `${at - end}`).toEqual(whole)
      // The cut is below or above the number of bytes that are held.
      for (const before of [start + 10, start + 60_000, start + 70_000])
        expect(watched(one, before, at), `${before - end}, ${at - end}`).toEqual(whole)
      for (let next = at + 1; next <= end + 9; next++)
        expect(watched(one, at, next), `${at - end}, ${next - end}`).toEqual(whole)
    }
  })

  test('a large event that ends with CR LF is complete at the end of the stream, even if its last LF never arrives', () => {
    const cut = { ...one, large: one.large.slice(0, -1), last: '' }
    expect(watched(cut, start + 70_000)).toMatchObject({ complete: true, usage: { input: 100, output: 20 } })
    expect(watched(cut)).toMatchObject({ complete: true, usage: { input: 100, output: 20 } })
  })
})
