import type { Provenance, ProvenResponse } from '../../domain/provenance.ts'
import type { Usage } from '../../domain/usage.ts'
import type { HoldOpening, SettledCall } from '../ledger-writes.ts'
import type { QueuedOperation } from './messages.ts'

/**
 * Batch of operations as it is posted to a thread: one flat list, without field names. `postMessage` clones
 * value by value, and every call makes a hold and a settlement: with field names both take more than twice as
 * long.
 */
export type PackedBatch = readonly unknown[]

const HOLD_FIELDS = fieldsOf<HoldOpening>({
  id: true,
  owner: true,
  tokenId: true,
  userId: true,
  amount: true,
  promptAmount: true,
  startedMs: true,
  model: true,
  channel: true,
  group: true,
  stream: true,
  priceVersion: true,
  kind: true,
  budgets: true,
  requestedModel: true,
})

/** Fields of a settlement that are single values. */
type PlainCall = Omit<SettledCall, 'usage' | 'provenance'>

const CALL_FIELDS = fieldsOf<PlainCall>({
  id: true,
  tokenId: true,
  userId: true,
  model: true,
  group: true,
  stream: true,
  priceVersion: true,
  durationMs: true,
  quota: true,
  reason: true,
  delivered: true,
  endedMs: true,
  upstreamModel: true,
  channel: true,
  firstByteMs: true,
  kind: true,
  budgets: true,
  requestedModel: true,
  attempts: true,
  particulars: true,
})

const USAGE_FIELDS = fieldsOf<Omit<Usage, 'audioCacheRead' | 'imageCacheRead'>>({
  input: true,
  cacheRead: true,
  cacheWrite5m: true,
  cacheWrite1h: true,
  output: true,
  reasoning: true,
  webSearches: true,
  audioInput: true,
  imageInput: true,
  audioOutput: true,
  imageOutput: true,
  seconds: true,
  characters: true,
  images: true,
})

/** Provenance as it is packed: most has no reasoning, and an empty list would be cloned as an object. */
interface PlainProvenance extends Omit<Provenance, 'response' | 'reasoning'> {
  readonly reasoning: Provenance['reasoning'] | undefined
}

const PROVENANCE_FIELDS = fieldsOf<PlainProvenance>({
  keyTag: true,
  expiresMs: true,
  reasoning: true,
})
const NONE: Provenance['reasoning'] = []

const RESPONSE_FIELDS = fieldsOf<ProvenResponse>({
  id: true,
  upstreamId: true,
  tokens: true,
  previousId: true,
})

/** Fields that follow those of a settlement: of a response and its reasoning, of reasoning alone, or none. */
type ProvenanceMark = 'response' | 'reasoning' | undefined

/** Packs operations for a thread. */
export function pack(operations: Iterable<QueuedOperation>): PackedBatch {
  const values: unknown[] = []
  for (const [name, input] of operations) {
    values.push(name)
    if (name === 'hold') packFields(values, input as HoldOpening, HOLD_FIELDS)
    else if (name === 'settle') {
      packFields(values, input as SettledCall, CALL_FIELDS)
      packFields(values, (input as SettledCall).usage, USAGE_FIELDS)
      packProvenance(values, (input as SettledCall).provenance)
    } else values.push(input)
  }
  return values
}

/** Restores the operations that `pack` was given. */
export function unpack(values: PackedBatch): QueuedOperation[] {
  const operations: QueuedOperation[] = []
  let position = 0
  const next = <T>(fields: readonly (keyof T)[]): T => {
    const record: Partial<T> = {}
    for (const field of fields) record[field] = values[position++] as T[keyof T]
    return record as T
  }
  while (position < values.length) {
    const name = values[position++] as string
    if (name === 'hold') operations.push([name, next<HoldOpening>(HOLD_FIELDS)])
    else if (name === 'settle') {
      const call = next<PlainCall>(CALL_FIELDS)
      const usage = next<Usage>(USAGE_FIELDS)
      const has = values[position++] as ProvenanceMark
      if (has === undefined) {
        operations.push([name, { ...call, usage }])
        continue
      }
      const { keyTag, expiresMs, reasoning = NONE } = next<PlainProvenance>(PROVENANCE_FIELDS)
      const response = has === 'response' ? next<ProvenResponse>(RESPONSE_FIELDS) : null
      operations.push([name, { ...call, usage, provenance: { keyTag, expiresMs, reasoning, response } }])
    } else operations.push([name, values[position++]])
  }
  return operations
}

function packProvenance(values: unknown[], provenance: Provenance | undefined): void {
  const mark: ProvenanceMark = provenance && (provenance.response ? 'response' : 'reasoning')
  values.push(mark)
  if (!provenance) return
  const { reasoning } = provenance
  const plain = { ...provenance, reasoning: reasoning.length === 0 ? undefined : reasoning }
  packFields<PlainProvenance>(values, plain, PROVENANCE_FIELDS)
  if (provenance.response) packFields(values, provenance.response, RESPONSE_FIELDS)
}

/** Lists the fields of a type in the order in which they are packed; a missing field does not compile. */
function fieldsOf<T>(fields: Readonly<Record<keyof T, true>>): readonly (keyof T)[] {
  return Object.keys(fields) as (keyof T)[]
}

function packFields<T>(values: unknown[], record: T, fields: readonly (keyof T)[]): void {
  for (const field of fields) values.push(record[field])
}
