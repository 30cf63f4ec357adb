import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Pseudonyms } from '@sluice/screen/pseudonyms'
import { compileRule } from '@sluice/screen/rule'
import { TextScreen } from '@sluice/screen/screen'
import { NO_USAGE } from '@sluice/wire/usage'
import { expect, test } from 'vitest'
import { growthOf, LINEAR_GROWTH } from '../../../test/fixtures/pace.ts'
import type { Guard } from '../../domain/guard.ts'
import { RequestMemory } from '../../limits/request-memory.ts'
import type { Tap } from '../../call/dialects/answer-reader.ts'
import { CallGuards, type ScreenMaker } from './call-guards.ts'
import { ActiveGuard } from './active-guard.ts'
import { GuardedTap } from './guarded-tap.ts'
import { HeldBackText } from './held-back-text.ts'
import { KnownTexts } from './known-texts.ts'
import type { ContentToCheck } from './services/service-checks.ts'
import { ServiceChecks } from './services/service-checks.ts'

const MEMORY = new RequestMemory(
  () => 1024,
  () => performance.now(),
)

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const GUARD: Guard = {
  name: 'codes',
  where: ['input', 'output', 'tool_arguments', 'tool_results'],
  do: 'redact',
  mode: 'enforce',
  match: { kind: 'regex', regex: ['code-[0-9]+-x'], most: 256 },
  sample: 1,
  timeout: 2000,
  on_failure: 'block',
  charge: false,
  most_delay: 0,
  with: '[R]',
  models: undefined,
  groups: undefined,
  users: undefined,
  tokens: undefined,
}

function callGuards(active: readonly ActiveGuard[], services?: ServiceChecks): CallGuards {
  const pseudonyms = new Pseudonyms({ key: Buffer.alloc(32), user: '1' })
  const known = new KnownTexts(MEMORY).of({ client: 1, key: 1 })
  const makeScreen: ScreenMaker = (rules) => {
    const rule = compileRule('codes', { regex: ['code-[0-9]+-x'] })
    return new TextScreen(rules.map((one) => ({ rule, do: one.do, with: '[R]' })))
  }
  return new CallGuards(active, pseudonyms, known, makeScreen, services)
}

/** The inner tap of a stream that is sent as it came. */
function passing(): Tap {
  return {
    push: (chunk: Buffer) => ({ forward: chunk.length > 0 ? chunk : undefined, terminal: false }),
    end: () => ({ complete: true }),
    finalBytes: () => Buffer.alloc(0),
    failureFrame: () => Buffer.from('data: {"error":{}}\n\n'),
    keepAliveFrame: () => undefined,
    release() {},
    error: undefined,
  } as unknown as Tap
}

class Memory {
  bytes = 0
  resize(bytes: number): void {
    this.bytes = bytes
  }
}

/** Services that let everything pass. */
class Passing extends ServiceChecks {
  readonly #window: number
  asked: ContentToCheck[] = []

  constructor(active: readonly ActiveGuard[], window: number) {
    const services = { onFailure() {} }
    super(active.map((one) => ({ active: one, service: {} })) as never, { services } as never)
    this.#window = window
  }

  override get window(): number {
    return this.#window
  }

  override async check(given: ContentToCheck): Promise<readonly string[]> {
    this.asked.push(given)
    return given.texts.map(({ text }) => text)
  }
}

const guarded = (guards: CallGuards, memory = new Memory()): GuardedTap =>
  new GuardedTap(passing(), { guards, dialect: 'chat', signsReasoning: false, isArray: false }, memory)

const held = (checks: ServiceChecks, memory = new Memory()): GuardedTap =>
  guarded(callGuards([], checks), memory)

const chunk = (index: number, delta: object): Buffer =>
  Buffer.from(`data: ${JSON.stringify({ choices: [{ index, delta, finish_reason: null }] })}\n\n`)

/** Pushes events one by one, each after what was asked about those before it. */
async function feed(tap: Tap, events: Iterable<Buffer>): Promise<string> {
  let sent = ''
  for (const event of events) {
    sent += String(tap.push(event).forward ?? '')
    while (tap.check?.checking) {
      await tap.check?.checking
      sent += String(tap.push(Buffer.alloc(0)).forward ?? '')
    }
  }
  return sent
}

test('a streamed text that a guard checks in windows takes memory for its characters, not for each of its pieces', () => {
  const channel = new HeldBackText({ key: '0/content', ...PLAIN, frame: String })
  collect()
  const before = process.memoryUsage().heapUsed
  for (let at = 0; at < 300_000; at += 20) {
    channel.add({ spot: PLAIN, given: String(at).padStart(20, 'x'), next: undefined })
    if (channel.isDue(400)) channel.decide(channel.undecided, 400)
  }
  collect()
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(5_000_000)
  expect(channel.length).toBe(300_000)
  expect(channel.bytes).toBeGreaterThan(300_000)
})

const PLAIN = { place: 'output', isSigned: false, isJson: false } as const

test('the memory of the part of a stream that a guard holds back is counted, and released once that part is sent', async () => {
  const memory = new Memory()
  const tap = held(new Passing([new ActiveGuard(GUARD)], 0), memory)
  const events = Array.from({ length: 5000 }, (_, at) => chunk(0, { content: `word ${at}` }))
  collect()
  const before = process.memoryUsage().heapUsed
  await feed(tap, events)
  collect()
  expect(memory.bytes).toBeGreaterThan(process.memoryUsage().heapUsed - before)
  const whole = memory.bytes
  tap.end()
  while (tap.check?.checking) {
    await tap.check?.checking
    tap.push(Buffer.alloc(0))
  }
  expect(memory.bytes).toBeLessThan(whole / 10)
})

test('a guard checks a streamed text in linear time while the arguments of an earlier tool call are incomplete', async () => {
  const call = { tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{"a":"' } }] }
  const piece = chunk(0, { content: 'hello '.repeat(70) })
  const events = (count: number): Buffer[] => [chunk(1, call), ...Array.from({ length: count }, () => piece)]
  const guard = (given: readonly Buffer[]) => feed(held(new Passing([new ActiveGuard(GUARD)], 400)), given)
  expect(await growthOf(250, events, guard)).toBeLessThan(LINEAR_GROWTH)
})

test.each([
  ['block', 'failed_blocked', true],
  ['pass', 'failed_passed', false],
] as const)(
  'an answer with more than 1,024 simultaneous texts is a failure of its guard (on_failure: %s)',
  async (onFailure, verdict, isBlocked) => {
    const events = Array.from({ length: 1100 }, (_, index) => chunk(index, { content: 'co' }))
    const active = new ActiveGuard({ ...GUARD, on_failure: onFailure })
    const memory = new Memory()
    const tap = guarded(callGuards([active]), memory)
    await feed(tap, events.slice(0, 1000))
    expect(tap.isBlocked).toBe(false)
    expect(memory.bytes).toBeGreaterThan(1000 * 5000)
    await feed(tap, events.slice(1000))
    expect(tap.isBlocked).toBe(isBlocked)
    expect(active.verdict).toBe(verdict)
    const served = new ActiveGuard({ ...GUARD, on_failure: onFailure })
    const holding = held(new Passing([served], 400))
    const sent = await feed(holding, events)
    expect(holding.isBlocked).toBe(isBlocked)
    expect(served.verdict).toBe(verdict)
    expect(sent.includes('"index":1099')).toBe(!isBlocked)
  },
)

test('a guard that checks only requests does not block an answer with more texts than can be held back', async () => {
  const before = new ActiveGuard({ ...GUARD, where: ['input'] })
  const after = new ActiveGuard({ ...GUARD, on_failure: 'pass' })
  const tap = held(new Passing([before, after], 400))
  await feed(
    tap,
    Array.from({ length: 1100 }, (_, index) => chunk(index, { content: 'co' })),
  )
  expect(tap.isBlocked).toBe(false)
  expect([before.verdict, after.verdict]).toEqual(['allowed', 'failed_passed'])
  expect(new Passing([before, new ActiveGuard({ ...GUARD, mode: 'monitor' })], 0).withholds).toBe(false)
})

test('stream events that repeat a whole text at its end are not kept in memory when a guard checks the stream', async () => {
  const memory = new Memory()
  const tap = new GuardedTap(
    passing(),
    {
      guards: callGuards([new ActiveGuard(GUARD)]),
      dialect: 'responses',
      signsReasoning: false,
      isArray: false,
    },
    memory,
  )
  const done = (at: number, text: string): Buffer =>
    Buffer.from(
      `data: ${JSON.stringify({ type: 'response.output_text.done', output_index: at, content_index: 0, text })}\n\n`,
    )
  await feed(tap, [done(0, 'warm')])
  collect()
  const before = process.memoryUsage().heapUsed
  for (let at = 1; at < 60; at++) await feed(tap, [done(at, `code-1-x ${at} `.repeat(20_000))])
  collect()
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(5_000_000)
  expect(tap.refusalBytes(NO_USAGE)).toBeDefined()
})

test('a text that every event of a stream repeats is checked by a guard once, and redacted in each event', async () => {
  const events = Array.from({ length: 50 }, (_, at) =>
    Buffer.from(
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: `${at} ` } }], citations: ['code-1-x'] })}\n\n`,
    ),
  )
  const active = new ActiveGuard(GUARD)
  const sent = await feed(guarded(callGuards([active])), events)
  expect([active.matches, sent.split('"citations":["[R]"]').length]).toEqual([1, 51])
  expect(sent).not.toContain('code-1-x')
  const checks = new Passing([new ActiveGuard(GUARD)], 0)
  const tap = held(checks)
  await feed(tap, events)
  tap.end()
  let passed = ''
  do {
    await tap.check?.checking
    passed += String(tap.push(Buffer.alloc(0)).forward ?? '')
  } while (tap.check?.checking)
  expect(checks.asked.flatMap(({ texts }) => texts.map(({ text }) => text))).toEqual([
    Array.from({ length: 50 }, (_, at) => `${at} `).join(''),
    'code-1-x',
  ])
  expect(passed).toBe(Buffer.concat(events).toString())
})

test('what a stream holds back of a text that is escaped many times counts as memory until the text has ended', async () => {
  const memory = new Memory()
  const tap = guarded(callGuards([new ActiveGuard(GUARD)]), memory)
  const units = (text: string): string =>
    text.replaceAll(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  const text = units(units(units(units('code-4711'))))
  tap.push(chunk(0, { content: 'x' }))
  const before = memory.bytes
  tap.push(chunk(0, { content: text }))
  expect(memory.bytes - before).toBeGreaterThan(text.length)
  await tap.check?.checking
  tap.push(Buffer.alloc(0))
  expect(memory.bytes - before).toBeGreaterThan(2 * text.length)
  tap.push(chunk(0, { content: ' and so on' }))
  expect(memory.bytes).toBeLessThan(before + text.length)
})
