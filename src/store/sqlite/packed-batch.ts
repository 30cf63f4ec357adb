import type { Usage } from '@sluice/wire/usage'
import type { Provenance, ProvenResponse } from '../../domain/stored-response.ts'
import {
  SETTLEMENT_FIELDS,
  HOLD,
  type HoldOpening,
  type SettledCall,
  USAGE,
} from '../../domain/records/usage.ts'
import { USAGE_COUNTS } from '../../domain/records/usage-counts.ts'
import type { QueuedOperation } from './messages.ts'

/**
 * Batch of operations as it is posted to a thread: one flat list, without field names. `postMessage` clones
 * value by value, and every call makes a hold and a settlement: with field names both take more than twice as
 * long.
 */
export type PackedBatch = readonly unknown[]

/** Fields of a record, and an object that has them. */
interface Form<T> {
  readonly names: readonly (keyof T)[]
  readonly empty: T
}

// Copies of a parsed object stay fast to read; an object built field by field becomes a hash table.
function formOf<T>(...records: readonly object[]): Form<T> {
  const names = records.flatMap((fields) => Object.keys(fields)) as (keyof T)[]
  return { names, empty: JSON.parse(JSON.stringify(Object.fromEntries(names.map((name) => [name, 0])))) as T }
}

const HOLD_FORM = formOf<HoldOpening>(HOLD.fields)

/** Fields of a settlement that are single values. */
type PlainCall = Omit<SettledCall, 'usage' | 'provenance'>

const CALL_FORM = formOf<PlainCall>(USAGE.fields, SETTLEMENT_FIELDS.fields)

const USAGE_FORM = formOf<Usage>(USAGE_COUNTS)

const NO_REASONING: Provenance['reasoning'] = []

/** Fields of a response; its id comes first, and shows that there is one. */
const RESPONSE_FORM = formOf<ProvenResponse>({ id: 0, upstreamId: 0, tokens: 0, previousId: 0 })

/** Packs operations for a thread. */
export function packBatch(operations: Iterable<QueuedOperation>): PackedBatch {
  const values: unknown[] = []
  for (const [name, input] of operations) {
    values.push(name)
    if (name === 'hold') packFields(values, input as HoldOpening, HOLD_FORM)
    else if (name === 'settle') {
      packFields(values, input as SettledCall, CALL_FORM)
      packFields(values, (input as SettledCall).usage, USAGE_FORM)
      packProvenance(values, (input as SettledCall).provenance)
    } else values.push(input)
  }
  return values
}

/** Restores the operations that `pack` was given. */
export function unpackBatch(values: PackedBatch): QueuedOperation[] {
  const operations: QueuedOperation[] = []
  let position = 0
  const next = <T>({ names, empty }: Form<T>): T => {
    const record = { ...empty }
    for (const name of names) record[name] = values[position++] as T[keyof T]
    return record
  }
  while (position < values.length) {
    const name = values[position++] as string
    if (name === 'hold') operations.push([name, next<HoldOpening>(HOLD_FORM)])
    else if (name === 'settle') {
      const call = next<PlainCall>(CALL_FORM)
      const usage = next<Usage>(USAGE_FORM)
      const keyTag = values[position++] as string | undefined
      if (keyTag === undefined) {
        operations.push([name, { ...call, usage }])
        continue
      }
      const reasoning = (values[position++] as Provenance['reasoning'] | undefined) ?? NO_REASONING
      const response = values[position] === undefined ? null : next<ProvenResponse>(RESPONSE_FORM)
      if (!response) position++
      operations.push([name, { ...call, usage, provenance: { keyTag, reasoning, response } }])
    } else operations.push([name, values[position++]])
  }
  return operations
}

// Missing parts are undefined in their places; an empty list would be cloned as an object.
function packProvenance(values: unknown[], provenance: Provenance | undefined): void {
  values.push(provenance?.keyTag)
  if (!provenance) return
  const { response, reasoning } = provenance
  values.push(reasoning.length === 0 ? undefined : reasoning)
  if (response) packFields(values, response, RESPONSE_FORM)
  else values.push(undefined)
}

function packFields<T>(values: unknown[], record: T, { names }: Form<T>): void {
  for (const name of names) values.push(record[name])
}
