import { randomUUID } from 'node:crypto'
import {
  ALL_USERS,
  isInObjects,
  KEPT_PART_BYTES,
  KEPT_SHARES,
  type KeptBound,
  type KeptEntry,
  type KeptFilter,
  type KeptKind,
  type KeptShareName,
  type KeptSum,
  OBJECT_BYTES,
  OBJECT_PART_BYTES,
  objectContentId,
  rulesOf,
  type StoredDataKind,
} from '../domain/kept.ts'
import { GatewayError } from '../errors.ts'
import { namedObjects } from './named-objects.ts'
import {
  newObjectKey,
  OBJECT_KEY_LENGTH,
  objectName,
  type ObjectPlace,
  readObject,
  readObjectPart,
  sealObject,
} from './object-place.ts'
import type { EntryToKeep } from './operations/kept.ts'
import type { KeptPage } from './operations/read-kept.ts'
import type { RowStore } from './store.ts'

/** Number of rows that one write removes. It is small, because charges of calls wait for the same commit. */
const REMOVED_AT_A_TIME = 20
/** Milliseconds between two removals of objects whose rows were removed with many others. */
const REMOVAL_MS = 10_000
/** Number of contents whose objects cannot be removed after which a removal ends. */
const MAX_FAILED_REMOVALS = 3
/** Bytes of parts that are written to an `ObjectPlace` at a time. */
const MAX_OBJECT_BYTES = 8 * OBJECT_BYTES

/** A content in pieces of any size, which may arrive while it is stored. */
type Pieces = Iterable<Uint8Array> | AsyncIterable<Uint8Array>

/** Services that the store of what is kept needs. */
interface KeptStoreServices {
  readonly rows: Pick<RowStore, 'read' | 'write'>
  /** The maximum size of each share in bytes. */
  readonly maxBytes: Readonly<Record<KeptShareName, () => number>>
  /** Where contents of large kinds are written and read; absent if they are in the database. */
  readonly objects?:
    | {
        /** The place in force. */
        readonly place: () => Promise<ObjectPlace>
        /** Name of this node; undefined if there is one alone. */
        readonly node: string | undefined
        /** Called with the bytes of buffers that were read or written, and are garbage soon. */
        readonly onGarbage?: (bytes: number) => void
      }
    | undefined
  /** Monitor of the free disk space; undefined if the database server is on another machine. */
  readonly room: { hasRoomFor(kind: StoredDataKind): boolean } | undefined
}

/**
 * What is kept until it expires, encrypted, in the database that all nodes share: entries with a key, facts, and a content
 * of any size. Each share is limited: the oldest entries are removed to make room for the newest.
 */
export class KeptStore {
  readonly #services: KeptStoreServices
  readonly #turns = new WriteTurns(KEPT_PART_BYTES)
  readonly #objectTurns = new WriteTurns(MAX_OBJECT_BYTES)
  /** Names of the shares whose oldest entries are being removed. */
  readonly #shrinking = new Set<string>()
  #removingObjects: Promise<number> | undefined
  #mayRemoveMore = false
  readonly #namesObjects: () => Promise<boolean>

  constructor(services: KeptStoreServices) {
    this.#services = services
    this.#namesObjects = namedObjects(services.rows)
  }

  /** Whether an entry of this size may be kept at all. */
  admits(kind: KeptKind, bytes: number): boolean {
    const { maxBytes, room } = this.#services
    const rules = rulesOf(kind)
    if (rules.share !== null && bytes > maxBytes[rules.share]()) return false
    return room?.hasRoomFor(rules.room) ?? true
  }

  /** Whether the file systems of the database and of large contents have room for more than what is kept in any case. */
  async hasSpace(): Promise<boolean> {
    const { room, objects } = this.#services
    if (room && !room.hasRoomFor('responses')) return false
    const place = await objects?.place()
    return place?.hasRoom() ?? true
  }

  /** Whether a user keeps less than the maximum of a share. */
  async isBelowMaximum(share: KeptShareName, userId: number): Promise<boolean> {
    return (await this.bytesOf(share, userId)) < this.#services.maxBytes[share]()
  }

  /**
   * Stores an entry with its content in pieces of any size, replacing one with the same key: first the parts except the
   * last one, then that one with the row, by which the entry is found. Resolves to false if it was not stored: `storeKept`.
   * Then, and if a write or the reading of the pieces fails, no parts stay. Rejects with `files_full` above `maxBytes` of
   * a share that refuses entries, unless the entry is `always` kept.
   */
  async write(
    entry: EntryToKeep,
    pieces: Pieces = [],
    keeping: 'bounded' | 'always' = 'bounded',
  ): Promise<boolean> {
    const { rows, objects } = this.#services
    const { kind, userId } = entry
    if (objects && rulesOf(kind).isLarge) return this.#writeObjects(objects, entry, pieces, keeping)
    const contentId = randomUUID()
    let last: Uint8Array | undefined
    let earlierParts = 0
    let bytes = 0
    let isStored = false
    try {
      for await (const part of partsOf(pieces, KEPT_PART_BYTES)) {
        if (last) {
          const earlier = { kind, userId, contentId, part: earlierParts, bytes: last, nowMs: Date.now() }
          earlierParts += 1
          const write = (): Promise<boolean> => rows.write('storeKeptPart', earlier)
          if (!(await this.#turns.run(userId, last.length, write))) return false
        }
        last = part
        bytes += part.length
      }
      const content = { contentId, bytes, earlierParts, last }
      const sums = await this.#turns.run(userId, last?.length ?? entry.facts.length, () =>
        rows.write('storeKept', { ...entry, ...(keeping === 'bounded' && this.#boundOf(kind)), content }),
      )
      isStored = sums !== undefined
      this.#note(sums ?? [])
      return isStored
    } finally {
      // If this removal fails too, the parts are removed when the incomplete content has expired.
      if (!isStored && earlierParts > 0)
        await removeAll(rows, { kind: 'incomplete', key: contentId }).catch(() => {})
    }
  }

  /** Does what `write` does, with the content in an `ObjectPlace`. Its key is before the facts in the row. */
  async #writeObjects(
    { place: open, node, onGarbage }: NonNullable<KeptStoreServices['objects']>,
    entry: EntryToKeep,
    pieces: Pieces,
    keeping: 'bounded' | 'always',
  ): Promise<boolean> {
    const { rows } = this.#services
    const { kind, userId } = entry
    const place = await open()
    await place.begin(async () => !(await this.#namesObjects()))
    if (keeping === 'bounded' && !(await place.hasRoom())) return false
    const contentId = objectContentId(randomUUID())
    const key = newObjectKey()
    let parts = 0
    let bytes = 0
    let isStored = false
    try {
      for await (const part of partsOf(pieces, OBJECT_BYTES)) {
        const number = parts
        const row = { kind, userId, contentId, part: number, nowMs: Date.now(), node }
        if (!(await rows.write('storeKeptPart', row))) return false
        parts += 1
        bytes += part.length
        const sealed = sealObject(key, contentId, number, part)
        onGarbage?.(3 * sealed.length)
        await this.#objectTurns.run(userId, sealed.length, () =>
          place.put(objectName(contentId, number), sealed),
        )
      }
      const content = { contentId, bytes, earlierParts: parts, last: undefined }
      const facts = key + entry.facts
      const bound = keeping === 'bounded' && this.#boundOf(kind)
      const sums = await rows.write('storeKept', { ...entry, facts, ...bound, content })
      isStored = sums !== undefined
      return isStored
    } finally {
      // If this fails too, the objects are removed when the incomplete content has expired.
      if (!isStored && parts > 0)
        await rows.write('lapseIncomplete', { contentId }).then(
          () => this.#beginRemoving(),
          () => {},
        )
    }
  }

  /**
   * Removes the objects of contents whose entries are gone, or were never written. Resolves to the number of these contents.
   * What cannot be removed now is removed by a later call.
   */
  removeObjects(): Promise<number> {
    this.#mayRemoveMore = true
    this.#removingObjects ??= this.#removeAllObjects().finally(() => (this.#removingObjects = undefined))
    return this.#removingObjects
  }

  async #removeAllObjects(): Promise<number> {
    let removed = 0
    while (this.#mayRemoveMore) {
      this.#mayRemoveMore = false
      removed += await this.#removeLapsed()
    }
    return removed
  }

  async #removeLapsed(): Promise<number> {
    const { rows, objects } = this.#services
    if (!objects || !(await rows.read('hasKept', {}))) return 0
    let removed = 0
    let failures = 0
    for (let after = ''; ; ) {
      const page = { after, nowMs: Date.now(), limit: REMOVED_AT_A_TIME }
      const contents = await rows.read('lapsedContents', page)
      if (contents.length === 0) return removed
      const place = await objects.place()
      for (const { contentId, parts } of contents) {
        after = contentId
        try {
          for (let part = 0; part < parts; part += 1) await place.remove(objectName(contentId, part))
        } catch (error) {
          failures += 1
          if (failures === MAX_FAILED_REMOVALS) throw error
          continue
        }
        await rows.write('removeKept', { kind: 'incomplete_objects', key: contentId, limit: 1 })
        removed += 1
      }
    }
  }

  #beginRemoving(): void {
    void this.removeObjects().catch(() => {})
  }

  /**
   * Ends incomplete contents that earlier runs of this node have left. From then on, objects are removed that nothing needs
   * any more, until the signal aborts.
   */
  async keepRemovingObjects(signal: AbortSignal): Promise<void> {
    const { rows, objects } = this.#services
    await rows.write('lapseIncomplete', { node: objects?.node })
    this.#beginRemoving()
    const timer = setInterval(() => this.#beginRemoving(), REMOVAL_MS).unref()
    signal.addEventListener('abort', () => clearInterval(timer))
  }

  /** Bytes that a user keeps in a share. */
  bytesOf(share: KeptShareName, userId: number): Promise<number> {
    return this.#services.rows.read('keptBytes', { share, userId })
  }

  /** Finds a user's entries of a kind, by their keys in this order, that have not expired. */
  async list(page: KeptPage): Promise<readonly KeptEntry[]> {
    return (await this.#services.rows.read('listKept', { ...page, nowMs: Date.now() })).map(withObjectKey)
  }

  /** Finds the keys and users of all entries of a kind, or of those with these keys. */
  async keysOf(
    kind: KeptKind,
    keys?: readonly string[],
  ): Promise<readonly { readonly key: string; readonly userId: number }[]> {
    const { rows } = this.#services
    return (await rows.read('hasKept', {})) ? rows.read('keysOfKind', { kind, keys }) : []
  }

  /** Stores entries that consist of facts, in one write that begins at once. Resolves to false if `bound` is reached. */
  async writeFacts(entries: readonly EntryToKeep[], bound?: KeptBound): Promise<boolean> {
    const sums = await this.#services.rows.write('storeKeptFacts', { entries, bound })
    this.#note(sums ?? [])
    return sums !== undefined
  }

  /** Finds an entry that has not expired. `userId`: who looks for it. */
  async find(kind: KeptKind, key: string, userId: number): Promise<KeptEntry | undefined> {
    return (await this.findAll(kind, [key], userId))[0]
  }

  /** Finds entries by their keys, in any order; unknown keys are left out. */
  async findAll(kind: KeptKind, keys: readonly string[], userId: number): Promise<readonly KeptEntry[]> {
    const found = await this.#services.rows.read('findKept', { kind, keys, userId, nowMs: Date.now() })
    return found.map(withObjectKey)
  }

  /** Reads one part of a content; undefined if it has been removed. All but the last have `partBytesOf` bytes. */
  async part({ kind, contentId, objectKey }: KeptEntry, part: number): Promise<Buffer | undefined> {
    if (objectKey !== undefined) {
      const { objects } = this.#services
      const place = await objects?.place()
      objects?.onGarbage?.(2 * OBJECT_PART_BYTES)
      return place && readObjectPart(place, { contentId, objectKey }, part)
    }
    const bytes = await this.#services.rows.read('readKeptPart', { kind, contentId, part })
    if (bytes) this.#services.objects?.onGarbage?.(2 * bytes.length)
    return bytes ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength) : undefined
  }

  /** Reads a content part by part. Throws `not_found` if it has been removed. */
  async *stream(entry: KeptEntry): AsyncGenerator<Buffer, void, undefined> {
    const { contentId, objectKey } = entry
    const { objects } = this.#services
    const place = objectKey === undefined ? undefined : await objects?.place()
    if (place && objectKey !== undefined) {
      for (let number = 0; number < entry.parts; number += 1, objects?.onGarbage?.(8 * OBJECT_BYTES))
        yield* readObject(place, { contentId, objectKey }, number)
      return
    }
    for (let part = 0; part < entry.parts; part += 1) {
      const bytes = await this.part(entry, part)
      if (!bytes) throw new GatewayError('not_found', 'this content is not kept any more')
      yield bytes
    }
  }

  /** Removes the entries that match the filter. Resolves to their number. */
  async remove(filter: KeptFilter): Promise<number> {
    const removed = await removeAll(this.#services.rows, filter)
    if (removed > 0 && rulesOf(filter.kind).isLarge) this.#beginRemoving()
    return removed
  }

  /** The maximum above which a write of the kind is refused, if its share has one. */
  #boundOf(kind: KeptKind): { readonly maxShareBytes?: number } {
    const { share } = rulesOf(kind)
    if (share === null || !KEPT_SHARES[share].refuses) return {}
    return { maxShareBytes: this.#services.maxBytes[share]() }
  }

  #note(sums: readonly KeptSum[]): void {
    for (const { share, userId, bytes } of sums) {
      if (KEPT_SHARES[share].refuses) continue
      const isWhole = !KEPT_SHARES[share].isCommon || userId === ALL_USERS
      if (isWhole && bytes > this.#services.maxBytes[share]()) void this.#shrink(share, userId)
    }
  }

  /** Removes the oldest entries of a share that is too large. If that fails, the next write to the share repeats it. */
  async #shrink(share: KeptShareName, userId: number): Promise<void> {
    const { rows, maxBytes } = this.#services
    const name = `${share} ${userId}`
    if (this.#shrinking.has(name)) return
    this.#shrinking.add(name)
    try {
      for (let more = true; more; ) {
        const limits = { maxBytes: maxBytes[share](), limit: REMOVED_AT_A_TIME }
        const done = await rows.write('removeOldestKept', { share, userId, ...limits })
        if (done.rest) await removeRest(rows)
        more = done.more
      }
    } catch {
      // The database is unavailable or closed.
    } finally {
      this.#shrinking.delete(name)
    }
  }
}

/** Removes all entries that match a filter, with their contents. Resolves to their number. */
export async function removeAll(rows: Pick<RowStore, 'write'>, filter: KeptFilter): Promise<number> {
  for (let count = 0; ; ) {
    const { removed, rest } = await rows.write('removeKept', { ...filter, limit: REMOVED_AT_A_TIME })
    if (rest) await removeRest(rows)
    count += removed
    if (removed === 0 || filter.key !== undefined) return count
  }
}

/** Removes what is left of contents whose removal has begun: their rows have the expiry 0. */
async function removeRest(rows: Pick<RowStore, 'write'>): Promise<void> {
  while ((await rows.write('pruneKept', { nowMs: 0, limit: REMOVED_AT_A_TIME })) > 0);
}

/**
 * Cuts a content into parts. Each has its own memory: posting a view to a thread would clone all of the memory that the view
 * belongs to.
 */
async function* partsOf(pieces: Pieces, partBytes: number): AsyncGenerator<Uint8Array, void, undefined> {
  let waiting: Uint8Array[] = []
  let bytes = 0
  for await (const piece of pieces) {
    let rest = piece
    while (bytes + rest.length >= partBytes) {
      const fitting = rest.subarray(0, partBytes - bytes)
      yield joined([...waiting, fitting], partBytes)
      rest = rest.subarray(fitting.length)
      waiting = []
      bytes = 0
    }
    if (rest.length > 0) waiting.push(rest)
    bytes += rest.length
  }
  if (bytes > 0) yield joined(waiting, bytes)
}

function joined(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const whole = new Uint8Array(length)
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}

interface WaitingWrite {
  readonly bytes: number
  readonly start: () => void
}

/** An entry with the key of its content, if that is in an `ObjectPlace`. */
function withObjectKey(entry: KeptEntry): KeptEntry {
  if (!isInObjects(entry)) return entry
  const [objectKey, facts] = [entry.facts.slice(0, OBJECT_KEY_LENGTH), entry.facts.slice(OBJECT_KEY_LENGTH)]
  return { ...entry, objectKey, facts }
}

/**
 * Limits the bytes of concurrent writes, so that charges of calls do not wait behind large contents. Users
 * take turns, so that a user does not wait for all contents of another user.
 */
class WriteTurns {
  readonly #maxBytes: number
  /** Writes that wait, by user, in the order of the users' turns. */
  readonly #waiting = new Map<number, WaitingWrite[]>()
  #writes = 0
  #bytes = 0
  /** The user who had the last turn. */
  #last: number | undefined

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  async run<Result>(userId: number, bytes: number, write: () => Promise<Result>): Promise<Result> {
    if (this.#waiting.size > 0 || !this.#fits(bytes))
      await new Promise<void>((start) => this.#wait(userId, { bytes, start }))
    else this.#begin(userId, bytes)
    try {
      return await write()
    } finally {
      this.#writes -= 1
      this.#bytes -= bytes
      this.#next()
    }
  }

  #fits(bytes: number): boolean {
    return this.#writes === 0 || this.#bytes + bytes <= this.#maxBytes
  }

  #begin(userId: number, bytes: number): void {
    this.#last = userId
    this.#writes += 1
    this.#bytes += bytes
  }

  #wait(userId: number, write: WaitingWrite): void {
    const writes = this.#waiting.get(userId)
    if (writes) writes.push(write)
    else this.#waiting.set(userId, [write])
  }

  #next(): void {
    for (;;) {
      const [first, second] = this.#waiting
      const next = first?.[0] === this.#last && second ? second : first
      const write = next?.[1][0]
      if (!next || !write || !this.#fits(write.bytes)) return
      const [userId, writes] = next
      writes.shift()
      this.#waiting.delete(userId)
      if (writes.length > 0) this.#waiting.set(userId, writes)
      this.#begin(userId, write.bytes)
      write.start()
    }
  }
}
