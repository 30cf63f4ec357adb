import type { ErrorCode } from '../../errors.ts'
import type { Secrets } from '../secrets.ts'
import type { PackedBatch } from './packed-batch.ts'

/** The first thing that a thread is told. */
export type ThreadOptions =
  | { readonly role: 'writer' | 'reader'; readonly path: string; readonly secrets: Secrets }
  /** Of the file of one node among many, which holds nothing secret. */
  | { readonly role: 'node'; readonly path: string }

/** The reads that the writer answers, in the order of its queue. */
const LOCAL_READS = ['countUsers', 'storedConfiguration', 'tokenByKeyHash'] as const

/** The name of a read that needs no thread of its own. */
export type LocalRead = (typeof LOCAL_READS)[number]

/** Whether the writer answers the operation of that name, though it writes nothing. */
export function isLocalRead(name: string): name is LocalRead {
  return LOCAL_READS.some((read) => read === name)
}

/** The name of an operation, and its input. */
export type QueuedOperation = readonly [name: string, input: unknown]

/** What the main thread says; it waits for the answer to one batch before it sends the next. */
export type ToThread = { readonly kind: 'batch'; readonly operations: PackedBatch } | { readonly kind: 'close' }

/** What a thread says. */
export type FromThread =
  /** The database is open, and is ours. */
  | { readonly kind: 'ready' }
  /** It could not be opened. */
  | { readonly kind: 'refused'; readonly failure: SerializedError }
  | BatchReply

/** How a batch went: operation by operation once it is committed, or as a whole. */
export type BatchReply =
  | { readonly kind: 'done'; readonly outcomes: readonly Outcome[] }
  | { readonly kind: 'failed'; readonly failure: SerializedError }

/** What one operation came to; undefined for one that has nothing to say, as most have. */
export type Outcome = { readonly value: unknown } | { readonly failure: SerializedError } | undefined

/** An error in a form that crosses threads with its class and its code. */
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
    }
  | {
      readonly kind: 'other'
      readonly message: string
      readonly stack: string
      readonly sqliteCode: number | undefined
    }
