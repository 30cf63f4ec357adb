import type { Usage } from '@sluice/wire/usage'
import type { Provenance, NativeResponseRecord } from '../../domain/stored-response.ts'
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
 * A batch of operations as posted to a thread: a flat list of values without field names. Every call posts a
 * hold and a settlement, and `postMessage` takes more than twice as long for objects with field names.
 */
export type PackedBatch = readonly unknown[]

/**
 * How a record is packed: the names of its fields in order, and an object with these fields, which is copied
 * to restore a record.
 */
interface Form<T> {
  readonly names: readonly (keyof T)[]
  readonly empty: T
}

// An object copied from parsed JSON is fast to read; V8 would store an object that is built field by field as
// a hash table.
function formOf<T>(...records: readonly object[]): Form<T> {
  const names = records.flatMap((fields) => Object.keys(fields)) as (keyof T)[]
  return { names, empty: JSON.parse(JSON.stringify(Object.fromEntries(names.map((name) => [name, 0])))) as T }
}

const HOLD_FORM = formOf<HoldOpening>(HOLD.fields)

/** The values of a settlement that are neither a list nor an object. */
type PlainCall = Omit<SettledCall, 'usage' | 'provenance' | 'part'>

const CALL_FORM = formOf<PlainCall>(USAGE.fields, SETTLEMENT_FIELDS.fields)

const USAGE_FORM = formOf<Usage>(USAGE_COUNTS)

const NO_REASONING: Provenance['reasoning'] = []

/**
 * What a settlement records about the response, as names of values. The id is first, because it shows whether
 * there is a response.
 */
const RESPONSE_FORM = formOf<NativeResponseRecord>({ id: 0, upstreamId: 0, tokens: 0, previousId: 0 })

/** Name in a packed batch of a settlement that is not packed: of a part of a hold, which is rare. */
const SETTLE_PART = 'settle part'

/** Packs operations for posting them to a thread. */
export function packBatch(operations: Iterable<QueuedOperation>): PackedBatch {
  const values: unknown[] = []
  for (const [name, input] of operations) {
    if (name === 'settle' && (input as SettledCall).part) {
      values.push(SETTLE_PART, input)
      continue
    }
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

/** Restores the operations that `packBatch` has packed. */
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
      const response = values[position] === undefined ? null : next<NativeResponseRecord>(RESPONSE_FORM)
      if (!response) position++
      operations.push([name, { ...call, usage, provenance: { keyTag, reasoning, response } }])
    } else operations.push([name === SETTLE_PART ? 'settle' : name, values[position++]])
  }
  return operations
}

// Missing parts of the provenance (which channel and key answered) are packed as undefined. So is an empty
// list of reasoning, because cloning a list takes longer.
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
