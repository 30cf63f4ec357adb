import process from 'node:process'
import { parseArgs } from 'node:util'
import { conversationOf } from '../../test/samples/conversation.ts'
import { deriveSecrets, hmacOf } from '../../src/store/secrets.ts'
import { SignedReply, signedPartsOfReply, UnsignedTurnFinder } from '@sluice/wire/signatures'
import { SignatureStore, type SigningAccount } from '../../src/features/stored-responses/signature-store.ts'
import type { Turn } from '@sluice/wire/conversation'
import type { ReplyEvent, ReplyPart } from '@sluice/wire/reply'

/**
 * Measures the cost of kept signatures: microseconds of CPU time on the event loop for a call whose history
 * has 15 signed tool calls, and for an event of a stream. The database is not included. `--check` fails above
 * the limits.
 */
const LIMIT_CALL_US = 1_000
const LIMIT_EVENT_US = 0.5
const ROUNDS = 30
const CALLS = 200

const { values: options } = parseArgs({
  options: { json: { type: 'boolean', default: false }, check: { type: 'boolean', default: false } },
})

const SIGNATURE = 'c2lnbmF0dXJl'.repeat(40)
const THOUGHT = 'The user wants to know how it is there. I had better look. '.repeat(8)
const RESULT = 'It is sunny, with some clouds in the west. '.repeat(100)
const account: SigningAccount = { protocol: 'messages', channel: 'anthropic', keyTag: 'tag' }

const idOf = (step: number): string => `toolu_01A09q90qw90lq917835lq${step}`
const reply = (step: number): ReplyPart[] => [
  { kind: 'thinking', text: THOUGHT, proof: { protocol: 'messages', value: SIGNATURE } },
  { kind: 'text', text: `Step ${step}.` },
  { kind: 'tool-call', id: idOf(step), name: 'look', input: '{}' },
]

/** History of five questions with three steps each, from a client that drops thoughts. */
function turns(): Turn[] {
  const user = (text: string): Turn => ({ role: 'user', parts: [{ kind: 'text', text }] })
  return Array.from({ length: 15 }, (_, step): Turn[] => [
    ...(step % 3 === 0 ? [user(`Question ${step}?`)] : []),
    { role: 'assistant', parts: reply(step).filter(({ kind }) => kind !== 'thinking') },
    {
      role: 'user',
      parts: [
        {
          kind: 'tool-result',
          callId: idOf(step),
          parts: [{ kind: 'text', text: RESULT }],
          isError: false,
        },
      ],
    },
  ]).flat()
}

const conversation = conversationOf({
  stream: true,
  system: [{ kind: 'text', text: 'Be short.' }],
  turns: turns(),
  includeUsage: true,
})

const secrets = deriveSecrets('a secret for measurements')
const store = new SignatureStore({
  kept: { findAll: () => Promise.resolve([]), writeFacts: () => Promise.resolve(true), admits: () => true },
  tag: (purpose, text) => hmacOf(secrets, purpose, text),
  isShared: false,
  metrics: { add: () => {} } as never,
})
for (let step = 0; step < 15; step++)
  void store.keep(1, account, signedPartsOfReply(reply(step), { context: '' }), 3_600_000)

async function restore(): Promise<void> {
  const history = new UnsignedTurnFinder(conversation)
  const found = await store.find(1, history.anchors)
  const restored = history.restored((anchor) => found.get(anchor)?.run)
  if (restored === conversation) throw new Error('nothing was restored')
}

function keep(): void {
  void store.keep(1, account, signedPartsOfReply(reply(16), { context: 'context' }), 3_600_000)
}

const EVENT: ReplyEvent = { kind: 'text', index: 0, text: ' word' }
const EVENTS = 2_000
function events(): void {
  const stream = new SignedReply()
  stream.add({ kind: 'part-start', index: 0, part: { kind: 'text' } })
  for (let i = 0; i < EVENTS; i++) stream.add(EVENT)
}

/** Median microseconds of CPU time for one run. */
async function cost(run: () => void | Promise<void>, times: number): Promise<number> {
  const rounds: number[] = []
  while (rounds.length < ROUNDS) {
    const before = process.cpuUsage()
    for (let i = 0; i < times; i++) await run()
    const { user, system } = process.cpuUsage(before)
    rounds.push((user + system) / times)
  }
  return rounds.toSorted((a, b) => a - b)[ROUNDS / 2] ?? 0
}

const figures = [
  {
    name: 'a call: look-up in memory and restoring 15 steps',
    us: await cost(restore, CALLS),
    limit: LIMIT_CALL_US,
  },
  { name: 'a call: keeping one step', us: await cost(keep, CALLS), limit: LIMIT_CALL_US },
  { name: 'an event of a stream', us: (await cost(events, 20)) / EVENTS, limit: LIMIT_EVENT_US },
]
if (options.json) console.log(JSON.stringify(figures))
else for (const { name, us } of figures) console.log(`${us.toFixed(3).padStart(10)} µs  ${name}`)
if (options.check)
  for (const { name, us, limit } of figures)
    if (us > limit) {
      console.error(`${name}: ${us.toFixed(3)} µs, above ${limit}`)
      process.exitCode = 1
    }
