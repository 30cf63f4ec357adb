import { createHash } from 'node:crypto'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { CHAT_CONVERSATION } from '@sluice/wire/chat'
import { ConversationDigests } from '@sluice/wire/conversation-digests'
import { scanObject } from '@sluice/wire/json/json-scan'
import { namedLifetimes } from '../src/relay/named-lifetimes.ts'
import { agentConversation } from './agent-conversation.ts'

/**
 * Measures what it costs to digest a conversation of 1 MB at all of its turns, in relation to one SHA-256 of the
 * same bytes: of four long messages, and of an agent. `--check` fails if the first exceeds the limit, because a
 * second pass over the bytes would double it. Each turn adds about 3 µs for its own digest.
 */
const LIMIT = 1.6
const BYTES = 1_000_000
const ROUNDS = 41
const SEED = Buffer.alloc(32)
const { values: options } = parseArgs({ options: { check: { type: 'boolean', default: false } } })

const LONG = Array.from({ length: 4 }, (_, index) => ({
  role: index % 2 === 0 ? 'user' : 'assistant',
  content: 'The quick brown fox. '.repeat(BYTES / 84),
}))

function millis(work: () => unknown): number {
  const before = performance.now()
  work()
  return performance.now() - before
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0
}

/** Returns the median ratio of the digests to one SHA-256. */
function compare(name: string, request: object): number {
  const body = Buffer.from(JSON.stringify({ model: 'm', stream: true, ...request }))
  const scan = scanObject(body)
  const digested: number[] = []
  const hashed: number[] = []
  const scanned: number[] = []
  const named: number[] = []
  let turns = 0
  // Alternates, so that other load affects all of them.
  for (let round = 0; round < ROUNDS; round++) {
    digested.push(millis(() => ({ turns } = new ConversationDigests(scan, CHAT_CONVERSATION, SEED, 'm'))))
    hashed.push(millis(() => createHash('sha256').update(body).digest()))
    scanned.push(millis(() => scanObject(body)))
    named.push(millis(() => namedLifetimes(scan)))
  }
  const ratio = median(digested.map((each, round) => each / (hashed[round] ?? 1)))
  console.log(
    `${name}, ${body.length} bytes, ${turns} turns: ${median(digested).toFixed(2)} ms for the digests of all turns, ` +
      `${median(hashed).toFixed(2)} ms for one SHA-256 (median ratio ${ratio.toFixed(2)}), ` +
      `${median(scanned).toFixed(2)} ms for reading the JSON, ${median(named).toFixed(2)} ms for finding directives`,
  )
  return ratio
}

const ratio = compare('four messages', { messages: LONG })
compare('an agent', agentConversation(BYTES))
process.exitCode = options.check && ratio > LIMIT ? 1 : 0
