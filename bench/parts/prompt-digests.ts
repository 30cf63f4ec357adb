import { createHash, createSecretKey } from 'node:crypto'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { CHAT_COMPARISON_RULES } from '@sluice/wire/chat'
import { ConversationDigests } from '@sluice/wire/conversation-digests'
import { scanObject } from '@sluice/wire/json/json-scan'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { outlineOf } from '@sluice/wire/shape/outline'
import { agentConversation } from '../load/agent-conversation.ts'

/**
 * Measures what it costs to find the earlier turn that a conversation of 1 MB continues, in relation to one SHA-256
 * of the same bytes: of four long messages, and of an agent. `--check` fails if the first exceeds the limit: then
 * the bytes are hashed more often, or by something slower than GMAC. Each turn adds about 1 µs.
 */
const LIMIT = 0.6
const BYTES = 1_000_000
const ROUNDS = 41
const SCOPE = { key: createSecretKey(Buffer.alloc(32)), seed: { text: '', mark: 0 }, model: 'm' }
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

/** What a call does whose conversation continues that of the turn before the last. Returns the number of turns. */
function search(scan: ScannedObject): number {
  const digests = new ConversationDigests(scan, CHAT_COMPARISON_RULES, SCOPE)
  for (let turn = digests.turns; turn > 0; turn--) digests.mark(turn)
  digests.digest(digests.turns)
  digests.digest(digests.turns - 2)
  return digests.turns
}

/** Returns the median ratio of the digests to one SHA-256. */
function compare(name: string, request: object): number {
  const body = Buffer.from(JSON.stringify({ model: 'm', stream: true, ...request }))
  let scan = scanObject(body)
  const digested: number[] = []
  const hashed: number[] = []
  const scanned: number[] = []
  const outlined: number[] = []
  let turns = 0
  // Alternates, so that other load affects all of them.
  for (let round = 0; round < ROUNDS; round++) {
    scanned.push(millis(() => (scan = scanObject(body))))
    outlined.push(millis(() => outlineOf(scan, CHAT_COMPARISON_RULES.prompt.shape)))
    digested.push(millis(() => (turns = search(scan))))
    hashed.push(millis(() => createHash('sha256').update(body).digest()))
  }
  const ratio = median(digested.map((each, round) => each / (hashed[round] ?? 1)))
  console.log(
    `${name}, ${body.length} bytes, ${turns} turns: ${median(digested).toFixed(2)} ms for finding the earlier turn, ` +
      `${median(hashed).toFixed(2)} ms for one SHA-256 (median ratio ${ratio.toFixed(2)}), ` +
      `${median(scanned).toFixed(2)} ms for reading the JSON, ${median(outlined).toFixed(2)} ms for its outline`,
  )
  return ratio
}

const ratio = compare('four messages', { messages: LONG })
compare('an agent', agentConversation(BYTES))
process.exitCode = options.check && ratio > LIMIT ? 1 : 0
