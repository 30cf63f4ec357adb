import { expect, test } from 'vitest'
import type { Guard } from '../../domain/guard.ts'
import { RequestMemory } from '../../limits/request-memory.ts'
import { Pseudonyms } from '../../redaction/pseudonyms.ts'
import { compileRule } from '../../redaction/rule.ts'
import { TextScreen } from '../../redaction/screen.ts'
import type { Passthrough, PassthroughResponses } from '../dialects/passthrough.ts'
import { ActiveGuard, CallGuards } from './call-guards.ts'
import { CheckCancelled } from './guard-turns.ts'
import { guardedPassthrough } from './guarded-passthrough.ts'
import { KnownTexts } from './known-texts.ts'

const REDACTING: Guard = {
  name: 'mail',
  where: ['output'],
  do: 'redact',
  mode: 'enforce',
  match: { kind: 'pii', kinds: ['email'] },
  models: undefined,
  groups: undefined,
  users: undefined,
  tokens: undefined,
  sample: 1,
  timeout: 2000,
  on_failure: 'block',
  charge: false,
  most_delay: 0,
  with: '#',
}
const SCREEN = new TextScreen([{ rule: compileRule('mail', { pii: ['email'] }), do: 'redact', with: '#' }])

/** A whole answer with a transcript, as the upstream has sent it. */
const inner: Passthrough = {
  hasBegun: true,
  error: undefined,
  hasContent: false,
  push: () => ({ forward: undefined, isOver: false }),
  end: () => true,
  rest: () => Buffer.alloc(0),
  measure: () => {
    throw new Error('nothing is charged')
  },
}

function received(contentType: string, body: string): Passthrough {
  const memory = new RequestMemory(
    () => 1024,
    () => performance.now(),
  )
  const guards = new CallGuards(
    [new ActiveGuard(REDACTING)],
    new Pseudonyms({ key: Buffer.from('a key'), user: '1' }),
    new KnownTexts(memory).of({ client: 1, key: 1 }),
    () => SCREEN,
  )
  const passed = {
    about: 'transcript',
    accept: '*/*',
    begin: () => inner,
    measureUnanswered: (call) => inner.measure(call, false, 'client_gone'),
  } satisfies PassthroughResponses
  const passthrough = guardedPassthrough(passed, guards).begin(contentType)
  if (!passthrough) throw new Error('guards let every answer begin')
  passthrough.push(Buffer.from(body))
  expect(passthrough.end()).toBe(true)
  return passthrough
}

const LINE = 'Write to ann@example.com about it.\n'
const TEXT = LINE.repeat(20_000)
const CUES = '1\n00:00:00,000 --> 00:00:01,000\n'
const ANSWERS = [
  ['application/json', JSON.stringify({ text: TEXT })],
  ['application/json', JSON.stringify({ text: '', segments: [{ text: TEXT }] })],
  ['application/json', JSON.stringify({ text: '', note: TEXT })],
  ['text/plain', TEXT],
  ['text/plain', CUES + TEXT],
] as const

test.each(ANSWERS)('a long transcript is checked in turns with other work: %s %.50s', async (type, body) => {
  const passthrough = received(type, body)
  let turns = 0
  let isOver = false
  const count = (): void => {
    turns += 1
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  await passthrough.check?.(new AbortController().signal)
  isOver = true
  expect(turns).toBeGreaterThan(20)
  expect(passthrough.rest().toString()).toBe(body.replaceAll('ann@example.com', '#'))
})

test.each(ANSWERS)(
  'the check of a transcript ends soon after its client has left: %s %.50s',
  async (type, body) => {
    const passthrough = received(type, body)
    const stop = new AbortController()
    const checking = passthrough.check?.(stop.signal)
    stop.abort()
    await expect(checking).rejects.toThrow(CheckCancelled)
  },
)
