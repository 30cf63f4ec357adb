import { Pseudonyms } from '@sluice/screen/pseudonyms'
import { compileRule } from '@sluice/screen/rule'
import { TextScreen } from '@sluice/screen/screen'
import { scanObject } from '@sluice/wire/json/json-scan'
import { CHAT_REQUEST } from '@sluice/wire/chat'
import { expect, test } from 'vitest'
import { RequestMemory } from '../../limits/request-memory.ts'
import { textGuard } from '../../../test/fixtures/text-guard.ts'
import { CallGuards } from './call-guards.ts'
import { ActiveGuard } from './active-guard.ts'
import { CheckCancelled } from '../../call/check-turns.ts'
import { applyGuardsToScan } from './guarded-request.ts'
import { KnownTexts } from './known-texts.ts'

const MEMORY = new RequestMemory(
  () => 1024,
  () => performance.now(),
)
const MATCH = { kind: 'pii', pii: ['email'] } as const
const REPLACING = textGuard({ name: 'mail', do: 'replace', match: MATCH })

const SCREEN = new TextScreen([
  { rule: compileRule(REPLACING.name, MATCH), do: REPLACING.do, with: REPLACING.with },
])

function replacing(known = new KnownTexts(MEMORY)): CallGuards {
  const pseudonyms = new Pseudonyms({ key: Buffer.from('a key'), user: '1' })
  return new CallGuards(
    [new ActiveGuard(REPLACING)],
    pseudonyms,
    known.of({ client: 1, key: 1 }),
    () => SCREEN,
  )
}

const LINE = 'Write to ann@example.com or bea@example.org about "it".\n'
const LONG = LINE.repeat(2_000_000 / LINE.length)

/** Turns of the event loop during a piece of work. */
async function turnsOf(work: () => Promise<unknown>): Promise<number> {
  let turns = 0
  let isOver = false
  const count = (): void => {
    turns += 1
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  await work()
  isOver = true
  return turns
}

test.each([
  ['a text', { messages: [{ role: 'user', content: LONG }] }],
  [
    'the arguments of a tool',
    {
      messages: [
        {
          role: 'assistant',
          tool_calls: [
            { id: 'c', type: 'function', function: { name: 'f', arguments: JSON.stringify({ text: LONG }) } },
          ],
        },
      ],
    },
  ],
])('replacing values in two megabytes does not block the event loop: %s', async (_, body) => {
  const guards = replacing()
  const scan = scanObject(Buffer.from(JSON.stringify(body)))
  let next = scan
  const turns = await turnsOf(async () => (next = await applyGuardsToScan(guards, scan, CHAT_REQUEST)))
  expect(turns).toBeGreaterThan(20)
  expect(guards.pseudonyms.size).toBe(2)
  const sent = next.bytes.toString()
  expect(sent).not.toContain('@example')
  expect(sent.match(/\[\[EMAIL_[0-9a-f]{8}\]\]/g)).toHaveLength(2 * Math.floor(2_000_000 / LINE.length))
  const [first, second] = [...guards.pseudonyms.entries()].map(([token]) => token)
  const expected = JSON.stringify(body)
    .replaceAll('ann@example.com', String(first))
    .replaceAll('bea@example.org', String(second))
  expect(sent).toBe(expected)
  expect(guards.text).toBe(`mail=redacted;count=${2 * Math.floor(2_000_000 / LINE.length)}`)
})

const ask = async (known: KnownTexts, ...contents: string[]) => {
  const guards = replacing(known)
  const messages = contents.map((content) => ({ role: 'user', content }))
  const scan = scanObject(Buffer.from(JSON.stringify({ messages })))
  const next = await applyGuardsToScan(guards, scan, CHAT_REQUEST)
  return { sent: next.bytes.toString(), verdicts: guards.text, tookMs: guards.all[0]?.tookMs }
}

test('a guard does not check a text without matches again; a text with matches is redacted each time', async () => {
  const known = new KnownTexts(MEMORY)
  const plain = 'Nothing to see here. '.repeat(50)
  const told = `${plain} ann@example.com`
  await ask(known, plain, told)
  expect(known.size).toBe(1)
  const again = await ask(known, plain)
  expect([again.verdicts, again.tookMs, again.sent]).toEqual([
    'mail=allowed;count=0',
    0,
    expect.stringContaining(plain),
  ])
  const third = await ask(known, plain, told, plain)
  expect([third.verdicts, third.sent.includes('ann@')]).toEqual(['mail=redacted;count=1', false])
  expect(third.tookMs).toBeGreaterThan(0)
})

test('the check of a request ends soon after its client has left', async () => {
  const guards = replacing()
  let isAborted = false
  guards.begin({
    needsUpstream: () => undefined,
    get isAborted() {
      return isAborted
    },
  })
  const scan = scanObject(Buffer.from(JSON.stringify({ messages: [{ role: 'user', content: LONG }] })))
  const checking = applyGuardsToScan(guards, scan, CHAT_REQUEST)
  isAborted = true
  await expect(checking).rejects.toThrow(CheckCancelled)
  expect(guards.matches).toBeLessThan(LONG.length / LINE.length)
})
