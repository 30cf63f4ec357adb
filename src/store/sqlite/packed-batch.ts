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
  token_id: true,
  user_id: true,
  amount: true,
  prompt_amount: true,
  started_ms: true,
  model: true,
  channel: true,
  group: true,
  stream: true,
  price_version: true,
  kind: true,
  budgets: true,
  requested_model: true,
})

/** Fields of a settlement that are single values. */
type PlainCall = Omit<SettledCall, 'usage' | 'provenance'>

const CALL_FIELDS = fieldsOf<PlainCall>({
  id: true,
  token_id: true,
  user_id: true,
  model: true,
  group: true,
  stream: true,
  price_version: true,
  duration_ms: true,
  quota: true,
  reason: true,
  delivered: true,
  ended_ms: true,
  upstream_model: true,
  channel: true,
  first_byte_ms: true,
  kind: true,
  budgets: true,
  requested_model: true,
  attempts: true,
  particulars: true,
  price_incomplete: true,
  note: true,
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
  searchUnits: true,
})

const NO_REASONING: Provenance['reasoning'] = []

/** Fields of a response; its id comes first, and tells that there is one. */
const RESPONSE_FIELDS = fieldsOf<ProvenResponse>({
  id: true,
  upstreamId: true,
  tokens: true,
  previousId: true,
})

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
      const keyTag = values[position++] as string | undefined
      if (keyTag === undefined) {
        operations.push([name, { ...call, usage }])
        continue
      }
      const reasoning = (values[position++] as Provenance['reasoning'] | undefined) ?? NO_REASONING
      const response = values[position] === undefined ? null : next<ProvenResponse>(RESPONSE_FIELDS)
      if (!response) position++
      operations.push([name, { ...call, usage, provenance: { keyTag, reasoning, response } }])
    } else operations.push([name, values[position++]])
  }
  return operations
}

// Missing parts are undefined in their place; an empty list would be cloned as an object.
function packProvenance(values: unknown[], provenance: Provenance | undefined): void {
  values.push(provenance?.keyTag)
  if (!provenance) return
  const { response, reasoning } = provenance
  values.push(reasoning.length === 0 ? undefined : reasoning)
  if (response) packFields(values, response, RESPONSE_FIELDS)
  else values.push(undefined)
}

/** Lists the fields of a type in the order in which they are packed; a missing field does not compile. */
function fieldsOf<T>(fields: Readonly<Record<keyof T, true>>): readonly (keyof T)[] {
  return Object.keys(fields) as (keyof T)[]
}

function packFields<T>(values: unknown[], record: T, fields: readonly (keyof T)[]): void {
  for (const field of fields) values.push(record[field])
}
