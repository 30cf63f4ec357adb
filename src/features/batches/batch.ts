import { createHash, randomUUIDv7 } from 'node:crypto'
import { timeOfBatchId } from '../../store/usage-id.ts'

/** Milliseconds after its creation at which what has not ended of a batch expires. */
export const WINDOW_MS = 24 * 3_600_000

/** The endpoints whose requests can be lines of a batch, by their paths. */
export const LINE_ENDPOINTS = {
  '/v1/chat/completions': 'chat',
  '/v1/responses': 'responses',
  '/v1/embeddings': 'embeddings',
  '/v1/completions': 'completions',
  '/v1/moderations': 'moderations',
  '/v1/messages': 'messages',
} as const
export type LinePath = keyof typeof LINE_ENDPOINTS

/** The API by which a batch was made, which alone finds it. */
export type BatchApi = 'openai' | 'messages'

/** How a batch ends: all lines have, the window is over, or it was cancelled. */
export type BatchEnd = 'completed' | 'expired' | 'cancelled'
/** How a line ends. */
export type LineOutcome = 'completed' | 'failed' | 'cancelled' | 'expired'

/** Tokens of all lines that were answered. */
export interface BatchUsage {
  readonly input: number
  readonly cached: number
  readonly output: number
  readonly reasoning: number
}

/** What is known of a batch, as it is stored. */
export interface BatchFacts {
  readonly path: LinePath
  /** The file with the lines; null if they came with the request. */
  readonly inputFile: string | null
  readonly metadata: Readonly<Record<string, string>> | null
  /** Headers of the request that hold for each line. */
  readonly headers: Readonly<Record<string, string>>
  /** Groups whose channels may answer lines, for their budgets. */
  readonly groups: readonly string[]
  /** Milliseconds for which results are kept. */
  readonly keepMs: number
  /** Number of lines. */
  readonly total: number
  /** Quota units that were held for lines that have not ended, when the progress was last stored. */
  readonly held?: number
  /** Lines that have ended, by how; those without a result are counted at the end of the batch. */
  readonly counts: Readonly<Record<LineOutcome, number>>
  readonly usage: BatchUsage
  /** The model of all lines; null if they have several. */
  readonly model: string | null
  /** How the batch ends, and since when it does; undefined before. */
  readonly ending?: { readonly how: BatchEnd; readonly atMs: number } | undefined
  /** When the batch ended; undefined before. */
  readonly endedMs?: number | undefined
  /** Ids of the files with results and with errors; null for none. */
  readonly outputFile: string | null
  readonly errorFile: string | null
}

/** A batch of a user. */
export interface Batch {
  readonly id: string
  readonly userId: number
  readonly tokenId: number
  readonly createdMs: number
  readonly facts: BatchFacts
  /** When its user wished to cancel it; undefined if that is not so. */
  readonly cancelMs: number | undefined
}

const PREFIXES: Readonly<Record<BatchApi, string>> = { openai: 'batch_', messages: 'msgbatch_' }

/**
 * Returns an id for a batch, and the time that the id has: the calls of its lines are found by it. Ids of one API sort by the
 * time at which they were made.
 */
export function newBatchId(api: BatchApi): Pick<Batch, 'id' | 'createdMs'> {
  const id = `${PREFIXES[api]}${randomUUIDv7().replaceAll('-', '')}`
  return { id, createdMs: timeOfBatchId(id) }
}

/** An id after those of all batches of an API. */
export function lastBatchId(api: BatchApi): string {
  return `${PREFIXES[api]}g`
}

/** Whether the text may be the id of a batch of this API. */
export function isBatchIdOf(api: BatchApi, id: string): boolean {
  return id.startsWith(PREFIXES[api])
}

/**
 * Returns the id of the call of a line: the same for every call that is made for the line, so that it is charged once. It is
 * a UUIDv7 with the time of the batch, so that it is known before the call.
 */
export function callIdOfLine({ id, createdMs }: Pick<Batch, 'id' | 'createdMs'>, line: number): string {
  const hash = createHash('sha256').update(`${id} ${line}`).digest()
  hash[0] = 0x70 | ((hash[0] as number) & 0x0f)
  hash[2] = 0x80 | ((hash[2] as number) & 0x3f)
  const random = hash.toString('hex', 0, 10)
  const time = createdMs.toString(16).padStart(12, '0')
  return [time.slice(0, 8), time.slice(8), random.slice(0, 4), random.slice(4, 8), random.slice(8, 20)].join(
    '-',
  )
}

/** A checked line of a batch. */
export interface BatchLine {
  /** Number of the line among the lines of the batch, from 1; empty lines do not count. */
  readonly number: number
  readonly customId: string
  /** Quota units that the batch holds for the line. */
  readonly amount: number
  /** The model of a line that goes to the batch of a provider; undefined for one that the gateway makes itself. */
  readonly model?: string | undefined
  /** Body of the request. */
  readonly body: Buffer
}

/** What is known of a line without its body. */
export interface LineHead extends Omit<BatchLine, 'body'> {
  /** Position of the body in the stored bodies, and its size. */
  readonly at: number
  readonly bytes: number
}
