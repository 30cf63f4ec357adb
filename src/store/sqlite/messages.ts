import type { ErrorCode } from '../../errors.ts'
import type { Secrets } from '../secrets.ts'
import type { PackedBatch } from './packed-batch.ts'

/** What is known of a thread's task before its first message. */
export interface ThreadExpectation {
  /** Whether its database is probably new. */
  readonly expectsMigrations?: boolean
}

/** First message to a thread. */
export type ThreadOptions =
  | { readonly role: 'writer' | 'reader'; readonly path: string; readonly secrets: Secrets }
  /** File of one node of a cluster, which contains no secrets. */
  | { readonly role: 'node'; readonly path: string }

/**
 * Operation of the writer that adds a part of the noted calls to the sums of usage. Input: the last note that
 * is needed, or undefined for all; outcome: `SumProgress`.
 */
export const SUM_UP_OPERATION = 'sumUp'

const SUM_READS: ReadonlySet<string> = new Set([
  'conservation',
  'modelCallers',
  'sumUsageDays',
  'usageByDay',
  'usageCoverage',
  'usageGroups',
  'usageSeries',
])

/** Whether a read uses sums of usage. */
export function isSumRead(name: string): boolean {
  return SUM_READS.has(name)
}

/** Reads that the writer answers, in the order of its queue. */
const LOCAL_READS = [
  'countUsers',
  'hasAlertState',
  'modelEnds',
  'pendingSeeds',
  'storedConfiguration',
  'tokenByKeyHash',
] as const

/** Name of a read that the writer answers. */
export type LocalRead = (typeof LOCAL_READS)[number]

/** Whether the writer answers a read. */
export function isLocalRead(name: string): name is LocalRead {
  return LOCAL_READS.some((read) => read === name)
}

/** Name and input of an operation. */
export type QueuedOperation = readonly [name: string, input: unknown]

/** Message to a thread. The next batch is sent after the reply to the previous one. */
export type ToThread =
  | { readonly kind: 'batch'; readonly operations: PackedBatch }
  | { readonly kind: 'close' }

/** Message from a thread. */
export type FromThread =
  /** Sent once the database is open. */
  | { readonly kind: 'ready' }
  /** Sent if the database could not be opened. */
  | { readonly kind: 'refused'; readonly failure: SerializedError }
  | BatchReply

/** Reply to a batch: an outcome per operation after the commit, or the failure of the whole batch. */
export type BatchReply =
  | { readonly kind: 'done'; readonly outcomes: readonly Outcome[] }
  | { readonly kind: 'failed'; readonly failure: SerializedError }

/** Outcome of one operation; undefined for a success without a value, which is usual. */
export type Outcome = { readonly value: unknown } | { readonly failure: SerializedError } | undefined

/** Error in a form that keeps its class and code between threads. */
export type SerializedError =
  | {
      readonly kind: 'gateway'
      readonly code: ErrorCode
      readonly message: string
      readonly retryAfter: number | undefined
    }
  | {
      readonly kind: 'unavailable'
      readonly message: string
      readonly cause: SerializedError | undefined
      readonly lasting: boolean
      readonly refusesWrites: boolean
    }
  | {
      readonly kind: 'other'
      readonly message: string
      readonly stack: string
      readonly sqliteCode: number | undefined
    }
