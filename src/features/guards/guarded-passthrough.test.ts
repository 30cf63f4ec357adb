import { Pseudonyms } from '@sluice/screen/pseudonyms'
import { compileRule } from '@sluice/screen/rule'
import { TextScreen } from '@sluice/screen/screen'
import { beforeEach, expect, test } from 'vitest'
import type { MediaAnswerKind } from '@sluice/wire/media-texts'
import { RequestMemory } from '../../limits/request-memory.ts'
import type { Tap } from '../../call/dialects/answer-reader.ts'
import type { Passthrough } from '../../call/dialects/passthrough.ts'
import { textGuard } from '../../../test/fixtures/text-guard.ts'
import { CallGuards } from './call-guards.ts'
import { ActiveGuard } from './active-guard.ts'
import { CheckCancelled } from '../../call/check-turns.ts'
import { guardedPassthrough } from './guarded-passthrough.ts'
import { KnownTexts } from './known-texts.ts'

const MEMORY = new RequestMemory(
  () => 1024,
  () => performance.now(),
)
const MATCH = { kind: 'pii', pii: ['email'] } as const
const GUARD = textGuard({ name: 'mail', do: 'redact', match: MATCH })
const SCREEN = new TextScreen([{ rule: compileRule(GUARD.name, MATCH), do: GUARD.do, with: GUARD.with }])
const LINE = 'Write to ann@example.com or bea@example.org about "it".\n'
const LINES = 8000
const LONG = LINE.repeat(LINES)
const CUE = '1\n00:00:00,000 --> 00:00:01,000\n'
const REDACTED = 'Write to # or # about "it".\n'

let guards: CallGuards
beforeEach(() => {
  const pseudonyms = new Pseudonyms({ key: Buffer.from('a key'), user: '1' })
  const known = new KnownTexts(MEMORY).of({ client: 1, key: 1 })
  guards = new CallGuards([new ActiveGuard(GUARD)], pseudonyms, known, () => SCREEN)
})

/** An answer that arrives as it is sent, behind the guards; `rest` is sent at its end. */
function guarded(
  about: MediaAnswerKind,
  contentType: string,
  isStream = false,
  rest = Buffer.alloc(0),
): Passthrough {
  const inner = {
    hasBegun: true,
    hasContent: true,
    error: undefined,
    tap: isStream ? ({} as Tap) : undefined,
    push: (chunk: Buffer) => ({ forward: chunk, isOver: false }),
    end: () => true,
    rest: () => rest,
  } as unknown as Passthrough
  const responses = { about, accept: contentType, begin: () => inner } as never
  return guardedPassthrough(responses, guards).begin(contentType) as Passthrough
}

const ANSWERS: readonly [string, MediaAnswerKind, string, string, string, number][] = [
  ['a transcript in plain text', 'transcript', 'text/plain', LONG, REDACTED.repeat(LINES), 2 * LINES],
  [
    'a transcript as subtitles',
    'transcript',
    'text/vtt',
    CUE + LONG,
    CUE + REDACTED.repeat(LINES),
    2 * LINES,
  ],
  [
    'a member of a transcript that no protocol describes',
    'transcript',
    'application/json',
    JSON.stringify({ text: '', note: LONG }),
    JSON.stringify({ text: '', note: REDACTED.repeat(LINES) }),
    2 * LINES,
  ],
  [
    'a transcript in JSON',
    'transcript',
    'application/json',
    JSON.stringify({ text: LONG, segments: Array.from({ length: LINES }, () => ({ text: LINE })) }),
    JSON.stringify({
      text: REDACTED.repeat(LINES),
      segments: Array.from({ length: LINES }, () => ({ text: REDACTED })),
    }),
    // The segments repeat the text, so that their matches do not count.
    2 * LINES,
  ],
  [
    'images with their prompts',
    'images',
    'application/json',
    JSON.stringify({ data: [{ revised_prompt: LONG }, { revised_prompt: LONG }] }),
    JSON.stringify({
      data: [{ revised_prompt: REDACTED.repeat(LINES) }, { revised_prompt: REDACTED.repeat(LINES) }],
    }),
    4 * LINES,
  ],
]

test.each(ANSWERS)('%s is checked in turns', async (_, about, contentType, given, expected, matches) => {
  const answer = guarded(about, contentType)
  answer.push(Buffer.from(given))
  expect(answer.end()).toBe(true)
  const seen = new Set<number>()
  let isOver = false
  const count = (): void => {
    seen.add(guards.matches)
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  await answer.check?.(new AbortController().signal)
  isOver = true
  // Other work has run between parts of the check. A fast machine needs fewer turns.
  expect(seen.size).toBeGreaterThan(5)
  expect(answer.rest().toString() === expected).toBe(true)
  expect(guards.matches).toBe(matches)
})

test.each(ANSWERS)('the check of %s ends when the client leaves', async (_, about, contentType, given) => {
  const answer = guarded(about, contentType)
  answer.push(Buffer.from(given))
  answer.end()
  const client = new AbortController()
  const checking = answer.check?.(client.signal)
  client.abort()
  await expect(checking).rejects.toThrow(CheckCancelled)
  expect(guards.matches).toBeLessThan(LINES)
})

test('of an answer whose client has left nothing is held and checked', () => {
  const whole = guarded('transcript', 'text/plain')
  whole.push(Buffer.from(LINE))
  expect(whole.held).toBe(LINE.length)
  whole.clientLeft?.()
  whole.push(Buffer.from(LINE))
  expect([whole.held, whole.end(), whole.rest().length]).toEqual([0, true, 0])

  const stream = guarded('transcript', 'text/event-stream', true)
  const event = Buffer.from(`data: ${JSON.stringify({ type: 'transcript.text.delta', delta: LINE })}\n\n`)
  expect(String(stream.push(event).forward)).toContain('Write to #')
  stream.clientLeft?.()
  expect([stream.push(event).forward, stream.end(), guards.matches]).toEqual([undefined, true, 2])
})

test.each(['', '\n', '\r\n', '\n\n', '\r\r', '\n\n\n'])(
  'the last event of a checked stream is sent if the stream ends with %j after it',
  async (ending) => {
    const done = JSON.stringify({ type: 'transcript.text.done', text: LINE })
    const answer = guarded('transcript', 'text/event-stream', true, Buffer.from(`data: ${done}${ending}`))
    expect(answer.end()).toBe(true)
    await answer.check?.(new AbortController().signal)
    const checked = JSON.stringify({ type: 'transcript.text.done', text: REDACTED })
    expect(String(answer.rest()).trimEnd()).toBe(`data: ${checked}`)
  },
)
