import { setTimeout as delay } from 'node:timers/promises'
import type { OutgoingBody } from '@sluice/http1'
import { type KeptEntry, type KeptKind, partBytesOf } from '../../domain/kept.ts'
import type { SettledCall } from '../../domain/records/usage.ts'
import { GatewayError } from '../../errors.ts'
import type { KeptStore } from '../../store/kept-store.ts'
import { timeOfBatchId } from '../../store/usage-id.ts'
import {
  type Batch,
  type BatchApi,
  type BatchFacts,
  type BatchLine,
  type LineHead,
  isBatchIdOf,
  lastBatchId,
  WINDOW_MS,
} from './batch.ts'
import {
  BatchPart,
  type PartFacts,
  partKeys,
  type SealedPrices,
  textOfValue,
  valueOfText,
} from './batch-part.ts'
import { LineFinder } from './line-finder.ts'

/** Number of entries that are read at a time: so few that they are garbage before V8 moves them to the old generation. */
const PAGE = 50
/** Characters of an entry with heads of lines, and number of them that are read at a time. */
const HEADS_LENGTH = 32_768
const HEADS_PAGE = 4
/** Milliseconds for which a batch is kept at least. No node may work on it for days, and providers keep results for a month. */
const MIN_KEEP_MS = 30 * 24 * 3_600_000
/** Digits of the number of a line in its key. */
const DIGITS = 7

/** Number of times that a part of a content is read that is missing or damaged, and milliseconds between them. */
const TRIES = 3
const RETRY_MS = 500

/** Why a line has no answer. `content_lost`: what was kept of its request is missing or damaged. */
export type Unanswered = 'expired' | 'cancelled' | 'result_missing' | 'content_lost'

/** How a line ended, as it is stored before its call is charged. */
export interface LineResult {
  /** Why there is no answer; undefined if there is one, or an error. */
  readonly without?: Unanswered | undefined
  readonly status: number
  readonly requestId: string
  /** Names of fields that the conversion left out. */
  readonly dropped: readonly string[]
  /** The row by which the call is charged; undefined if it was refused before it began. */
  readonly row: SettledCall | undefined
}

/** The result of a line as it is found. */
export interface StoredResult extends LineResult {
  readonly number: number
  readonly entry: KeptEntry
}

/** Which batches of a user are listed. */
export interface BatchPage {
  readonly userId: number
  readonly api: BatchApi
  /** The id after which the page begins in its order; undefined for the beginning of the list. */
  readonly after: string | undefined
  readonly order: 'asc' | 'desc'
  readonly limit: number
}

/**
 * Batches of users with their lines and results, encrypted. Only large contents are outside of the database, so that a batch
 * can end if they are lost.
 */
export class BatchStore {
  readonly #kept: KeptStore

  constructor(kept: KeptStore) {
    this.#kept = kept
  }

  /** Stores the checked lines of a batch that is made after them. Rejects with `files_full` or `storage_unavailable`. */
  async storeInput(
    batch: Pick<Batch, 'id' | 'userId' | 'createdMs'>,
    keepMs: number,
    lines: AsyncIterable<BatchLine>,
  ): Promise<void> {
    const entry = entryOf('batch_input', batch.id, batch, keepMs, '')
    try {
      const bodies = this.#storedHeads(batch, keepMs, lines)
      if (!this.#kept.admits('batch_input', 0) || !(await this.#kept.write(entry, bodies)))
        throw new GatewayError(
          'storage_unavailable',
          'there is no room for batches at the moment; try again',
          { retryAfter: 60 },
        )
    } catch (error) {
      await this.removeInput(batch).catch(() => {})
      throw error
    }
  }

  /** Stores the heads of lines, and yields their bodies. */
  async *#storedHeads(
    batch: Pick<Batch, 'id' | 'userId' | 'createdMs'>,
    keepMs: number,
    lines: AsyncIterable<BatchLine>,
  ): AsyncGenerator<Buffer, void, undefined> {
    let heads: string[] = []
    let length = 0
    let first = 1
    let place = 0
    let at = 0
    const store = async (): Promise<void> => {
      const facts = `{"at":${place},"heads":[${heads.join(',')}]}`
      const entry = entryOf('batch_heads', lineKey(batch, first), batch, keepMs, facts)
      await this.#kept.writeFacts([{ ...entry, bytes: Buffer.byteLength(facts) }])
      first += heads.length
      place = at
      heads = []
      length = 0
    }
    for await (const { customId, amount, body, model } of lines) {
      const head: WrittenHead = [customId, amount, body.length, model]
      const text = JSON.stringify(model === undefined ? head.slice(0, 3) : head)
      heads.push(text)
      length += text.length
      at += body.length
      if (length > HEADS_LENGTH) await store()
      yield body
    }
    if (heads.length > 0) await store()
  }

  /** Reads the lines of a batch in order without their bodies. */
  async *inputHeads(batch: Pick<Batch, 'id' | 'userId'>): AsyncGenerator<LineHead, void, undefined> {
    for await (const heads of this.#groupsOfHeads(batch)) yield* heads
  }

  async *#groupsOfHeads({
    id,
    userId,
  }: Pick<Batch, 'id' | 'userId'>): AsyncGenerator<readonly LineHead[], void, undefined> {
    for (let after = lineKey({ id }, 0); ; ) {
      const page = { kind: 'batch_heads', userId, after, order: 'asc', limit: HEADS_PAGE } as const
      const entries = await this.#kept.list(page)
      for (const entry of entries) {
        if (!entry.key.startsWith(`${id}-`)) return
        yield headsIn(entry)
        after = entry.key
      }
      if (entries.length < HEADS_PAGE) return
    }
  }

  async removeInput({ id, userId }: Pick<Batch, 'id' | 'userId'>): Promise<void> {
    await this.#kept.remove({ kind: 'batch_input', key: id, userId })
    await this.#kept.remove({ kind: 'batch_heads', userId, keys: lineKeys(id) })
  }

  /** Makes a batch, which is open from now on. Throws `too_many_batches` if the user has this many open batches. */
  async create(batch: Batch, prices: SealedPrices, most: number): Promise<void> {
    const { id, userId, facts } = batch
    const open = entryOf('batch_open', id, batch, facts.keepMs, textOfValue(prices))
    const bound = { kind: 'batch_open', userId, most } as const
    if (!(await this.#kept.writeFacts([factsEntry(batch), open], bound))) throw tooMany(most)
  }

  /** The prices of an open batch. */
  async pricesOf({ id, userId }: Batch): Promise<SealedPrices> {
    const entry = await this.#kept.find('batch_open', id, userId)
    if (!entry) throw new GatewayError('not_found', 'this batch is not open any more')
    return valueOfText(entry.facts) as SealedPrices
  }

  /** Resolves to false if the user was deleted; then nothing is stored. */
  save(batch: Batch): Promise<boolean> {
    return this.#kept.write(factsEntry(batch), [], 'always')
  }

  /** Records that the user wishes to cancel a batch. */
  cancel(batch: Batch, nowMs: number): Promise<boolean> {
    const entry = entryOf('batch_cancel', batch.id, batch, batch.facts.keepMs, String(nowMs))
    return this.#kept.write(entry, [], 'always')
  }

  async find(userId: number, id: string): Promise<Batch | undefined> {
    const entry = await this.#kept.find('batch', id, userId)
    return entry && (await this.#withCancel(userId, [entry]))[0]
  }

  /** Finds a batch of this API. Throws `not_found`. */
  async findOf(api: BatchApi, userId: number, id: string): Promise<Batch> {
    const batch = isBatchIdOf(api, id) ? await this.find(userId, id) : undefined
    if (!batch) throw new GatewayError('not_found', 'there is no batch with this id')
    return batch
  }

  /** Resolves to at most `limit` batches, and whether there are more. */
  async list({ api, after, order, limit, userId }: BatchPage): Promise<{
    readonly batches: readonly Batch[]
    readonly hasMore: boolean
  }> {
    const first = order === 'desc' ? lastBatchId(api) : undefined
    const page = { kind: 'batch', userId, after: after ?? first, order, limit: limit + 1 } as const
    const entries = (await this.#kept.list(page)).filter(({ key }) => isBatchIdOf(api, key))
    const batches = await this.#withCancel(userId, entries.slice(0, limit))
    return { batches, hasMore: entries.length > limit }
  }

  /** Removes a batch that has ended, with its results. */
  async remove({ id, userId }: Batch): Promise<void> {
    await this.#kept.remove({ kind: 'batch_results', key: id, userId })
    await this.#kept.remove({ kind: 'batch', key: id, userId })
  }

  async #withCancel(userId: number, entries: readonly KeptEntry[]): Promise<Batch[]> {
    if (entries.length === 0) return []
    const keys = entries.map(({ key }) => key)
    const wishes = await this.#kept.findAll('batch_cancel', keys, userId)
    const times = new Map(wishes.map(({ key, facts }) => [key, Number(facts)]))
    return entries.map(({ key: id, tokenId, createdMs, facts }) => {
      return {
        id,
        userId,
        tokenId,
        createdMs,
        facts: JSON.parse(facts) as BatchFacts,
        cancelMs: times.get(id),
      }
    })
  }

  /** The user of a batch; undefined if there is no such batch. */
  async ownerOf(id: string): Promise<number | undefined> {
    return (await this.#kept.keysOf('batch', [id]))[0]?.userId
  }

  /** Ids of all batches that are open, with their users. */
  async open(): Promise<readonly { readonly id: string; readonly userId: number }[]> {
    return (await this.#kept.keysOf('batch_open')).map(({ key: id, userId }) => ({ id, userId }))
  }

  /** Those of these batches that their users wish to cancel. */
  async wishesToCancel(ids: readonly string[]): Promise<ReadonlySet<string>> {
    return new Set((await this.#kept.keysOf('batch_cancel', ids)).map(({ key }) => key))
  }

  /** Throws `too_many_batches` if the user has this many open batches. */
  async refuseFurther(userId: number, most: number): Promise<void> {
    const page = { kind: 'batch_open', userId, after: undefined, order: 'asc', limit: most } as const
    if ((await this.#kept.list(page)).length >= most) throw tooMany(most)
  }

  /** Removes lines that were stored for batches that were never made, if they are older than this. */
  async removeOrphans(beforeMs: number): Promise<void> {
    const open = new Set((await this.open()).map(({ id }) => id))
    // A submission that broke off may have stored heads alone.
    const stored = [...(await this.#kept.keysOf('batch_input')), ...(await this.#kept.keysOf('batch_heads'))]
    const owners = new Map(stored.map(({ key, userId }) => [key.split('-', 1)[0] ?? '', userId]))
    for (const [id, userId] of owners)
      if (!open.has(id) && timeOfBatchId(id) < beforeMs) await this.removeInput({ id, userId })
  }

  /** Whether a further line of a user may be sent: its result, and what is under way, are kept in any case. */
  async hasRoom(userId: number): Promise<boolean> {
    return (await this.hasSpace()) && this.#kept.isBelowMaximum('files', userId)
  }

  /** Whether the disks have room for more results. */
  hasSpace(): Promise<boolean> {
    return this.#kept.hasSpace()
  }

  /** Stores how a line ended, with the body of its answer. Resolves to false if the user was deleted. */
  storeResult(batch: Batch, number: number, result: LineResult, body: Buffer): Promise<boolean> {
    const key = lineKey(batch, number)
    const entry = entryOf('batch_line', key, batch, batch.facts.keepMs, JSON.stringify(result))
    return this.#kept.write(entry, [body], 'always')
  }

  /** The stored results of a batch, in the order of its lines. */
  async *results({
    id,
    userId,
  }: Pick<Batch, 'id' | 'userId'>): AsyncGenerator<StoredResult, void, undefined> {
    for (let after = lineKey({ id }, 0); ; ) {
      const entries = await this.#kept.list({ kind: 'batch_line', userId, after, order: 'asc', limit: PAGE })
      for (const entry of entries) {
        if (!entry.key.startsWith(`${id}-`)) return
        yield { ...(JSON.parse(entry.facts) as LineResult), number: numberIn(entry.key), entry }
        after = entry.key
      }
      if (entries.length < PAGE) return
    }
  }

  async bodyOf({ entry }: StoredResult): Promise<Buffer> {
    const pieces: Buffer[] = []
    for await (const piece of this.#kept.stream(entry)) pieces.push(piece)
    return Buffer.concat(pieces)
  }

  /** Stores the results of a message batch as one content. */
  storeResults(batch: Batch, nowMs: number, pieces: AsyncIterable<Buffer>): Promise<boolean> {
    const { keepMs } = batch.facts
    const entry = { ...entryOf('batch_results', batch.id, batch, keepMs, ''), expiresMs: nowMs + keepMs }
    return this.#kept.write(entry, pieces, 'always')
  }

  /** The results of a message batch; undefined if they have expired. */
  async resultsOf({
    id,
    userId,
  }: Batch): Promise<{ readonly bytes: number; readonly pieces: AsyncIterable<Buffer> } | undefined> {
    const entry = await this.#kept.find('batch_results', id, userId)
    return entry && { bytes: entry.bytes, pieces: this.#kept.stream(entry) }
  }

  /** The batches of a user's batch at providers, in the order in which they were planned. */
  async parts({ id, userId }: Pick<Batch, 'id' | 'userId'>): Promise<BatchPart[]> {
    const found: BatchPart[] = []
    for (let after = `${id}-`; ; ) {
      const page = { kind: 'batch_part', userId, after, order: 'asc', limit: PAGE } as const
      const entries = (await this.#kept.list(page)).filter(({ key }) => key.startsWith(`${id}-`))
      for (const { key, facts } of entries) found.push(new BatchPart(key, valueOfText(facts) as PartFacts))
      after = entries.at(-1)?.key ?? ''
      if (entries.length < PAGE) return found
    }
  }

  /** Whether a batch that has not ended knows this id of a provider. */
  async knowsProviderId(id: string): Promise<boolean> {
    const byUser = Map.groupBy(await this.#kept.keysOf('batch_part'), ({ userId }) => userId)
    for (const [userId, places] of byUser) {
      const keys = places.map(({ key }) => key)
      const entries = await this.#kept.findAll('batch_part', keys, userId)
      if (entries.some(({ facts }) => (valueOfText(facts) as PartFacts).providerId === id)) return true
    }
    return false
  }

  /** Stores what is known of a batch at a provider. */
  async savePart(batch: Batch, { key, facts }: BatchPart): Promise<void> {
    await this.#kept.writeFacts([entryOf('batch_part', key, batch, batch.facts.keepMs, textOfValue(facts))])
  }

  /** Stores the bytes of a batch that is to be made at a provider, before anything else of it. */
  storePartLines(batch: Batch, key: string, pieces: AsyncIterable<Buffer>): Promise<boolean> {
    return this.#kept.write(entryOf('batch_part_lines', key, batch, batch.facts.keepMs, ''), pieces, 'always')
  }

  /** `onLost` is called if a part of the bytes is missing or damaged. */
  async partLines({ userId }: Batch, key: string, onLost: () => void): Promise<OutgoingBody> {
    const entry = await this.#kept.find('batch_part_lines', key, userId)
    if (!entry) throw new GatewayError('not_found', 'the lines of this batch are not kept any more')
    const partBytes = partBytesOf(entry)
    return {
      length: entry.bytes,
      read: async (position) => {
        const part = await this.#partOf(entry, Math.floor(position / partBytes))
        if (part) return part.subarray(position % partBytes)
        onLost()
        throw new GatewayError('not_found', 'this content is not kept any more')
      },
    }
  }

  removePartLines({ userId }: Batch, key: string): Promise<number> {
    return this.#kept.remove({ kind: 'batch_part_lines', key, userId })
  }

  /** Stores what guards have to know when the answers to these lines come. */
  async storeLineStates(batch: Batch, states: readonly (readonly [number, string])[]): Promise<void> {
    if (states.length === 0) return
    const { keepMs } = batch.facts
    await this.#kept.writeFacts(
      states.map(([number, state]) =>
        entryOf('batch_line_state', lineKey(batch, number), batch, keepMs, state),
      ),
    )
  }

  async lineState(batch: Batch, number: number): Promise<string | undefined> {
    return (await this.#kept.find('batch_line_state', lineKey(batch, number), batch.userId))?.facts
  }

  /** Finds lines by their numbers, in any order. */
  lineFinder({ id, userId }: Pick<Batch, 'id' | 'userId'>): LineFinder {
    return new LineFinder({
      groups: () => this.#groupsOfHeads({ id, userId }),
      group: async (first) => {
        const found = await this.#kept.find('batch_heads', lineKey({ id }, first), userId)
        return found ? headsIn(found) : []
      },
      bodies: async () => {
        const found = await this.#kept.find('batch_input', id, userId)
        return (
          found && {
            partBytes: partBytesOf(found),
            part: (part: number) => this.#kept.part(found, part),
            partAgain: (part: number) => this.#partOf(found, part),
          }
        )
      },
    })
  }

  /** Reads a part of a content, several times if it is missing or damaged. Resolves to undefined if it is lost. */
  async #partOf(entry: KeptEntry, part: number): Promise<Buffer | undefined> {
    for (let tried = 1; ; tried += 1) {
      const found = await this.#kept.part(entry, part)
      if (found || tried === TRIES) return found
      await delay(RETRY_MS, undefined, { ref: false })
    }
  }

  /** Removes what only the work on a batch needs, and last that it is open. */
  async close({ id, userId }: Pick<Batch, 'id' | 'userId'>): Promise<void> {
    const keys = lineKeys(id)
    await this.#kept.remove({ kind: 'batch_line', userId, keys })
    await this.#kept.remove({ kind: 'batch_line_state', userId, keys })
    for (const kind of ['batch_part_lines', 'batch_part'] as const)
      await this.#kept.remove({ kind, userId, keys: partKeys(id) })
    await this.removeInput({ id, userId })
    await this.#kept.remove({ kind: 'batch_open', key: id, userId })
  }
}

function tooMany(most: number): GatewayError {
  const message = `this user has ${most} batches that have not ended, the maximum`
  return new GatewayError('too_many_batches', message, { retryAfter: 60 })
}

/** Keys of the lines of a batch sort by their numbers. */
function lineKey({ id }: Pick<Batch, 'id'>, number: number): string {
  return `${id}-${String(number).padStart(DIGITS, '0')}`
}

function lineKeys(id: string): { readonly from: string; readonly to: string } {
  return { from: lineKey({ id }, 0), to: lineKey({ id }, 10 ** DIGITS - 1) }
}

/** Everything of a batch lasts longer than the batch and its results. */
function entryOf(
  kind: Extract<KeptKind, 'batch' | `batch_${string}`>,
  key: string,
  { userId, createdMs }: Pick<Batch, 'userId' | 'createdMs'>,
  keepMs: number,
  facts: string,
) {
  const expiresMs = createdMs + 2 * (WINDOW_MS + Math.max(keepMs, MIN_KEEP_MS))
  return { kind, key, userId, tokenId: 0, model: '', facts, createdMs, expiresMs }
}

function factsEntry(batch: Batch) {
  const { id, tokenId, facts } = batch
  return { ...entryOf('batch', id, batch, facts.keepMs, JSON.stringify(facts)), tokenId }
}

/** What is known of a line, as it is stored. */
type WrittenHead = readonly [customId: string, amount: number, bytes: number, model?: string | undefined]

/** The heads of consecutive lines, the first one of which is named by the key. */
function headsIn({ key, facts }: KeptEntry): readonly LineHead[] {
  const stored = JSON.parse(facts) as { readonly at: number; readonly heads: readonly WrittenHead[] }
  let { at } = stored
  const first = numberIn(key)
  return stored.heads.map(([customId, amount, bytes, model], index) => {
    const head = { number: first + index, customId, amount, model, at, bytes }
    at += bytes
    return head
  })
}

function numberIn(key: string): number {
  return Number(key.slice(-DIGITS))
}
