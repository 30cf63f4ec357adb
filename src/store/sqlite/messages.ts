import type { ErrorCode } from '../../errors.ts'
import type { SecretState } from '../secret-state.ts'
import type { Secrets } from '../secrets.ts'
import type { PackedBatch } from './packed-batch.ts'

/** What is known about the task of a thread before the thread receives its first message. */
export interface ThreadExpectation {
  /** Whether the thread will probably create a new database. */
  readonly expectsMigrations?: boolean
}

/** First message to a database thread: its role, and the file to open. */
export type ThreadOptions =
  | { readonly role: 'writer' | 'reader'; readonly path: string; readonly secrets: Secrets }
  /**
   * Options for the local file of a node in a cluster. They contain no secrets, because nothing in the file
   * is encrypted.
   */
  | { readonly role: 'node'; readonly path: string }

/**
 * Operation of the writer that adds some of the gathered calls to the sums of usage. Input: the last
 * generation that is needed; undefined for all calls so far. Result: `SumProgress`.
 */
export const SUM_UP_OPERATION = 'sumUp'

const SUM_READS: ReadonlySet<string> = new Set([
  'failedCalls',
  'findUnbalancedAccounts',
  'modelCallers',
  'sumUsageDays',
  'usageByDay',
  'usageSumsCoverage',
  'usageGroups',
  'usageSeries',
  'usageValues',
])

/** Whether a read uses the sums of usage. The gathered calls must then be added to the sums first. */
export function isSumRead(name: string): boolean {
  return SUM_READS.has(name)
}

/** Reads that the writer's thread answers, in the order in which they and the writes are queued. */
const LOCAL_READS = [
  'countUsers',
  'hasAlertState',
  'hasCalls',
  'hasKept',
  'modelRetirements',
  'pendingDeclaredUsers',
  'storedConfiguration',
  'tokenByKeyHash',
] as const

/** Name of a read that the writer's thread answers. */
export type LocalRead = (typeof LOCAL_READS)[number]

/** Whether the writer's thread answers the read. */
export function isLocalRead(name: string): name is LocalRead {
  return LOCAL_READS.some((read) => read === name)
}

/** Name and input of an operation. */
export type QueuedOperation = readonly [name: string, input: unknown]

/** A message to a database thread. A batch is sent only after the reply to the previous one. */
export type MessageToThread =
  | { readonly kind: 'batch'; readonly operations: PackedBatch }
  | { readonly kind: 'close' }

/** Message from a database thread. */
export type MessageFromThread =
  /** Sent once the database is open; the writer's thread adds which secret the database has. */
  | { readonly kind: 'ready'; readonly secretState?: SecretState | undefined }
  /** Sent if the database could not be opened. */
  | { readonly kind: 'refused'; readonly failure: SerializedError }
  | BatchReply

/**
 * Reply to a batch: after the commit one result per operation, or the error with which the whole batch
 * failed.
 */
export type BatchReply =
  | { readonly kind: 'done'; readonly outcomes: readonly Outcome[] }
  | { readonly kind: 'failed'; readonly failure: SerializedError }

/** Result of one operation; undefined if it succeeded and returned nothing, which is the usual case. */
export type Outcome = { readonly value: unknown } | { readonly failure: SerializedError } | undefined

/** An error in a form that can be posted to another thread and keeps its class and code. */
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
