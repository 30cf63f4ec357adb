import { randomBytes } from 'node:crypto'
import { seal, type Secrets, unseal } from '../store/secrets.ts'
import type { BucketCredentials, BucketLocation } from '../domain/bucket.ts'
import type { ContentLocation } from '../domain/content-log.ts'
import { callsOfBatch, type ContentBatch } from './batch.ts'
import { Bucket } from './bucket.ts'
import {
  type ContentEntry,
  type DataKey,
  decompress,
  type ContentEntryHead,
  sealContent,
  unsealContent,
} from './entries.ts'
import type { DropReason } from './content-capture.ts'
import type { Excerpt } from './excerpts.ts'
import { type PackedContent, packCalls } from './pack-calls.ts'
import { redactedContent } from './redact-content.ts'
import type {
  ContentDeletion,
  ContentOfCall,
  ContentSummary,
  ContentThreadOptions,
  ContentThreadRequests,
} from './messages.ts'
import { DAY_MS, dayOf, removalDayOf, expiryDayOf } from './retention.ts'
import type {
  DeletionMark,
  DataKeyOwner,
  ContentDatabase,
  ContentTransaction,
  StoredDataKey,
} from './content-database.ts'

/** Milliseconds for which a deletion is remembered, because content that it concerns may still arrive. */
const MARK_MS = 2 * DAY_MS
const KEY_BYTES = 32
/** Bytes of entries that are re-encrypted into one new object. */
const MAX_MOVED_BYTES = 4 * 1024 * 1024
/**
 * Maximum number of times that a deletion starts over because new content arrived under the keys it must
 * destroy.
 */
const MAX_ROUNDS = 3
const INSTALLATION = /^[0-9a-f]{16}$/
const NOWHERE = { object: '', objectAt: 0, objectBytes: 0 }

/** Encrypts, stores, finds and deletes content. Runs in the thread of the content log. */
export class ContentStorage implements ContentThreadRequests {
  /** Where new content is stored. Existing content is read from where it was stored. */
  #place: ContentLocation
  readonly #database: ContentDatabase
  readonly #secrets: Secrets
  readonly #bucketKey: BucketCredentials | undefined
  /** The open bucket, and its place as JSON, to notice a change of the settings. */
  #open: { readonly place: string; readonly bucket: Promise<Bucket> } | undefined

  constructor(
    database: ContentDatabase,
    { secrets, bucketKey, place }: Pick<ContentThreadOptions, 'secrets' | 'bucketKey' | 'place'>,
  ) {
    this.#database = database
    this.#secrets = secrets
    this.#bucketKey = bucketKey
    this.#place = place
  }

  replacePlace(place: ContentLocation): void {
    this.#place = place
  }

  replaceSecrets(secrets: Secrets): void {
    Object.assign(this.#secrets, secrets)
  }

  async write(batch: ContentBatch): Promise<readonly DropReason[]> {
    const { packed, lost } = packCalls(callsOfBatch(batch), batch.bytes)
    const bucket = await this.#bucket()
    if (!bucket) {
      await this.#database.write(async (writer) => writer.append(await this.#sealed(writer, packed)))
      return lost
    }
    // Write the object before the database refers to it, and do not lock the database while the bucket works.
    for (let rest = packed; rest.length > 0; ) {
      const entries = await this.#database.write((writer) => this.#sealed(writer, rest))
      const kept = await bucket.keep(entries)
      const late = await this.#database.write((writer) => appended(writer, kept))
      rest = rest.filter(({ call }) => late.has(call.id))
    }
    return lost
  }

  async find(ids: readonly string[]): Promise<readonly ContentSummary[]> {
    const heads = await this.#readable(await this.#database.heads(ids))
    return heads.map(({ head }) => this.#summaryOf(head))
  }

  redact(part: Uint8Array): Promise<Uint8Array | undefined> {
    return Promise.resolve(redactedContent(Buffer.from(part.buffer, part.byteOffset, part.length)))
  }

  async read({ id, kind }: Parameters<ContentThreadRequests['read']>[0]): Promise<ContentOfCall | undefined> {
    const found = await this.#contentOf(id)
    if (!found) return undefined
    const { head, lengths, content } = found
    // Loaded on demand, because the thread that writes does not need it.
    const { conversationOfContent } = await import('./conversation.ts')
    const conversation = conversationOfContent(kind, content, lengths)
    return { ...this.#summaryOf(head), lengths, content, conversation }
  }

  async excerpt({
    id,
    kind,
    words,
  }: Parameters<ContentThreadRequests['excerpt']>[0]): Promise<Excerpt | undefined> {
    const found = await this.#contentOf(id)
    if (!found || found.head.what === 'metadata') return undefined
    const [{ conversationOfContent }, { excerptWith, firstWords }] = await Promise.all([
      import('./conversation.ts'),
      import('./excerpts.ts'),
    ])
    const turns = conversationOfContent(kind, found.content, found.lengths) ?? []
    return words === undefined ? firstWords(turns) : excerptWith(turns, words)
  }

  /** Reads and decrypts a content; undefined if nothing is kept. */
  async #contentOf(id: string): Promise<
    | {
        readonly head: ContentEntryHead
        readonly lengths: readonly number[]
        readonly content: Uint8Array<ArrayBuffer>
      }
    | undefined
  > {
    const [found] = await this.#readable(await this.#database.heads([id]))
    if (!found) return undefined
    const { head, key } = found
    const sealed = await this.#sealedOf(head)
    const compressed = sealed && opened(this.#dataKey(key), head, sealed)
    if (!compressed) return undefined
    const content = new Uint8Array(decompress(compressed, head.bytes))
    return { head, lengths: JSON.parse(head.lengths) as number[], content }
  }

  async delete(deletion: ContentDeletion): Promise<boolean> {
    const atMs = Date.now()
    // This record of the deletion makes the content unreadable at once, and prevents content that is still on
    // its way from being stored.
    const id = await this.#database.write(async (writer) => writer.addMark(deletion, atMs))
    const mark = { ...deletion, id }
    let wasKept = false
    for (let round = 1; round <= MAX_ROUNDS; round += 1) {
      const done = await this.#remove(mark)
      wasKept ||= done.wasKept
      if (done.isWhole || done.stuck !== undefined) break
    }
    return wasKept
  }

  async prune(): ReturnType<ContentThreadRequests['prune']> {
    let stuck: string | undefined
    for (const mark of await this.#database.marks())
      if (!mark.isDone) stuck = (await this.#remove(mark)).stuck ?? stuck
    const nowMs = Date.now()
    return { removedContents: await this.#database.prune(dayOf(nowMs), nowMs - MARK_MS), stuck }
  }

  users(): Promise<readonly number[]> {
    return this.#database.users()
  }

  async sweep(): Promise<number> {
    const nowMs = Date.now()
    const bucket = await this.#bucket()
    return bucket ? bucket.sweep(dayOf(nowMs), nowMs, (day) => this.#database.objects(day)) : 0
  }

  async close(): Promise<void> {
    await this.#open?.bucket.then((bucket) => bucket.close())
    await this.#database.close()
  }

  /** The bucket in which new content is stored; undefined if it is stored in the database. */
  async #bucket(): Promise<Bucket | undefined> {
    const place = this.#place
    if (place.kind !== 's3') return undefined
    if (!this.#bucketKey) throw new Error('AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set')
    const text = JSON.stringify(place)
    if (this.#open?.place !== text) {
      void this.#open?.bucket.then(
        (former) => former.close(),
        () => {},
      )
      this.#open = { place: text, bucket: this.#opened(place, this.#bucketKey) }
    }
    return this.#open.bucket
  }

  async #opened(place: BucketLocation, key: BucketCredentials): Promise<Bucket> {
    try {
      const owner = await this.#database.installation()
      if (!INSTALLATION.test(owner)) throw new Error('the name of the installation cannot be read')
      return new Bucket(place, key, owner)
    } catch (error) {
      // The next request tries again to open the bucket.
      this.#open = undefined
      throw error
    }
  }

  /** The encrypted content of an entry; undefined if it is missing. */
  async #sealedOf(head: ContentEntryHead): Promise<Buffer | undefined> {
    if (head.object === '') return this.#database.sealedOf(head)
    const bucket = await this.#bucket()
    return bucket?.sealedOf(head)
  }

  /** Encrypts the content of those calls that no deletion concerns, into entries. */
  async #sealed(
    writer: ContentTransaction,
    packed: readonly PackedContent[],
  ): Promise<readonly ContentEntry[]> {
    const marks = await writer.marks()
    const kept = packed.filter(({ call }) => !marks.some((mark) => isMarked(mark, call)))
    const keys = await this.#currentKeys(
      writer,
      kept.map(({ call }) => ownerOf(call)),
    )
    return kept.map(({ call, compressed, ...facts }) => {
      const { id, userId, tokenId, startedMs, keepMs, what } = call
      const key = keys.get(ownerText(ownerOf(call)))!
      const dropDay = removalDayOf(startedMs, keepMs)
      const head = { id, userId, tokenId, startedMs, expiresMs: startedMs + keepMs, what, dropDay }
      return { ...facts, ...head, ...NOWHERE, keyId: key.id, sealed: sealContent(key, id, compressed) }
    })
  }

  /**
   * Carries out a deletion by destroying the data keys of its content. Other content under the same keys is
   * first re-encrypted with new keys, which are stored durably before the old keys are destroyed. `stuck` is why the bucket
   * prevents that.
   */
  async #remove(
    mark: ContentDeletion & { readonly id: number },
  ): Promise<{ readonly wasKept: boolean; readonly isWhole: boolean; readonly stuck?: string }> {
    const { userId, fromMs, toMs } = mark
    const [fromDay, toDay] = [dayOf(fromMs), dayOf(Math.max(fromMs, toMs - 1))]
    // From now on new content of these days is encrypted with the new keys.
    const { concerned, successors, elsewhere } = await this.#database.write((writer) =>
      this.#successors(writer, mark),
    )
    const moved = await this.#movedInBucket(elsewhere, successors).catch((error: unknown) =>
      error instanceof Error ? error.message : String(error),
    )
    // The bucket failed. The record of the deletion stays, and the next pruning removes the content.
    if (typeof moved === 'string') return { wasKept: true, isWhole: false, stuck: moved }
    return this.#database.write(async (writer) => {
      const gone: string[] = []
      let isWhole = true
      for (const key of await writer.keysOfUser(userId, fromDay, toDay)) {
        const entries = await writer.entriesOfKey(key.id)
        const successor = successors.get(key.id)
        const others = entries.filter((entry) => !isMarked(mark, entry))
        const isMovable = others.every((entry) => entry.object === '' || moved.has(placeText(entry)))
        // Another process has stored entries with this key meanwhile. The record of the deletion stays, and
        // the deletion is carried out again.
        if (!concerned.has(key.id) || !isMovable || (!successor && others.length > 0)) {
          if (others.length < entries.length) isWhole = false
          continue
        }
        for (const entry of others) {
          const anew =
            entry.object === '' && successor
              ? this.#resealed(entry, key, successor, await writer.sealedOf(entry))
              : moved.get(placeText(entry))
          if (anew) await writer.replace(anew)
        }
        gone.push(key.id)
      }
      await writer.removeEntriesOfKeys(gone)
      await writer.removeKeys(gone)
      if (isWhole) await writer.finishMark(mark.id)
      return { wasKept: gone.length > 0, isWhole }
    })
  }

  /**
   * Finds the keys that a deletion must destroy, makes a successor for each key that also opens other
   * content, and lists the entries that must be re-encrypted in the bucket.
   */
  async #successors(
    writer: ContentTransaction,
    mark: ContentDeletion,
  ): Promise<{
    readonly concerned: ReadonlySet<string>
    readonly successors: ReadonlyMap<string, DataKey>
    readonly elsewhere: readonly { readonly entry: ContentEntryHead; readonly key: StoredDataKey }[]
  }> {
    const { userId, fromMs, toMs } = mark
    const keys = await writer.keysOfUser(userId, dayOf(fromMs), dayOf(Math.max(fromMs, toMs - 1)))
    const concerned = new Map<StoredDataKey, readonly ContentEntryHead[]>()
    for (const key of keys) {
      const entries = await writer.entriesOfKey(key.id)
      if (isConcerned(mark, key) || entries.some((entry) => isMarked(mark, entry)))
        concerned.set(key, entries)
    }
    // If an earlier attempt at this deletion was interrupted, use the replacement keys that it has made.
    const newest = new Map<string, DataKey>()
    for (const key of keys)
      if (concerned.has(key)) newest.delete(ownerText(key))
      else newest.set(ownerText(key), this.#dataKey(key))
    const successors = new Map<string, DataKey>()
    const elsewhere: { readonly entry: ContentEntryHead; readonly key: StoredDataKey }[] = []
    for (const [key, entries] of concerned) {
      // All content of this key is deleted, so the key needs no replacement.
      if (entries.every((entry) => isMarked(mark, entry))) continue
      const successor = newest.get(ownerText(key)) ?? (await this.#newKey(writer, key))
      newest.set(ownerText(key), successor)
      successors.set(key.id, successor)
      for (const entry of entries)
        if (entry.object !== '' && !isMarked(mark, entry)) elsewhere.push({ entry, key })
    }
    return { concerned: new Set([...concerned.keys()].map(({ id }) => id)), successors, elsewhere }
  }

  /**
   * Re-encrypts entries of a bucket into new objects. Resolves to the new entries by their former places;
   * undefined for an entry that could not be read.
   */
  async #movedInBucket(
    entries: readonly { readonly entry: ContentEntryHead; readonly key: StoredDataKey }[],
    successors: ReadonlyMap<string, DataKey>,
  ): Promise<ReadonlyMap<string, ContentEntry | undefined>> {
    const moved = new Map<string, ContentEntry | undefined>()
    if (entries.length === 0) return moved
    const bucket = await this.#bucket()
    // Without the bucket these entries cannot be read, and once their key is destroyed they never can be.
    if (!bucket) return new Map(entries.map(({ entry }) => [placeText(entry), undefined]))
    let waiting: { readonly from: string; readonly anew: ContentEntry }[] = []
    const keep = async (): Promise<void> => {
      const kept = await bucket.keep(waiting.map(({ anew }) => anew))
      const byId = new Map(kept.map((entry) => [entry.id, entry]))
      for (const { from, anew } of waiting) moved.set(from, byId.get(anew.id))
      waiting = []
    }
    let bytes = 0
    for (const { entry, key } of entries) {
      const from = placeText(entry)
      const successor = successors.get(key.id)
      const anew = successor && this.#resealed(entry, key, successor, await bucket.sealedOf(entry))
      if (!anew) {
        moved.set(from, undefined)
        continue
      }
      waiting.push({ from, anew })
      bytes += anew.sealed.length
      if (bytes < MAX_MOVED_BYTES) continue
      await keep()
      bytes = 0
    }
    if (waiting.length > 0) await keep()
    return moved
  }

  /** An entry encrypted with another key; undefined if it cannot be decrypted. */
  #resealed(
    entry: ContentEntryHead,
    key: StoredDataKey,
    successor: DataKey,
    sealed: Buffer | undefined,
  ): ContentEntry | undefined {
    const compressed = sealed && opened(this.#dataKey(key), entry, sealed)
    if (!compressed) return undefined
    return { ...entry, ...NOWHERE, keyId: successor.id, sealed: sealContent(successor, entry.id, compressed) }
  }

  /** The entries that exist, are not deleted and not expired, with their keys. */
  async #readable(
    heads: readonly ContentEntryHead[],
  ): Promise<readonly { readonly head: ContentEntryHead; readonly key: StoredDataKey }[]> {
    if (heads.length === 0) return []
    const [keys, marks] = await Promise.all([
      this.#database.keys([...new Set(heads.map(({ keyId }) => keyId))]),
      this.#database.marks(),
    ])
    const byId = new Map(keys.map((key) => [key.id, key]))
    const nowMs = Date.now()
    return heads.flatMap((head) => {
      const key = byId.get(head.keyId)
      const isGone = head.expiresMs <= nowMs || marks.some((mark) => isMarked(mark, head))
      return key && !isGone ? [{ head, key }] : []
    })
  }

  #summaryOf(head: ContentEntryHead): ContentSummary {
    const { id, userId, tokenId, startedMs, what, sha256, bytes } = head
    const address = head.object === '' ? this.#database.addressOf(head) : `${head.object}#${id}`
    const level = what as ContentSummary['what']
    return { id, userId, tokenId, startedMs, what: level, address, sha256, bytes }
  }

  async #currentKeys(
    writer: ContentTransaction,
    owners: readonly DataKeyOwner[],
  ): Promise<ReadonlyMap<string, DataKey>> {
    const distinct = new Map(owners.map((owner) => [ownerText(owner), owner]))
    const stored = await writer.keysOf([...distinct.values()])
    const keys = new Map(stored.map((key) => [ownerText(key), this.#dataKey(key)]))
    for (const [name, owner] of distinct)
      if (!keys.has(name)) keys.set(name, await this.#newKey(writer, owner))
    return keys
  }

  async #newKey(writer: ContentTransaction, { userId, day, endDay }: DataKeyOwner): Promise<DataKey> {
    const made = { id: randomBytes(12).toString('hex'), key: randomBytes(KEY_BYTES) }
    const cipher = seal(this.#secrets, made.key.toString('base64'), { table: 'content', row: made.id })
    await writer.addKeys([{ id: made.id, userId, day, endDay, cipher }])
    return made
  }

  #dataKey({ id, cipher }: StoredDataKey): DataKey {
    return { id, key: Buffer.from(unseal(this.#secrets, cipher, { table: 'content', row: id }), 'base64') }
  }
}

/** Whether a deletion concerns a call's content. */
function isMarked(
  { userId, tokenId, fromMs, toMs }: ContentDeletion,
  call: Pick<DeletionMark, 'userId'> & { readonly tokenId: number; readonly startedMs: number },
): boolean {
  return (
    call.userId === userId &&
    (tokenId === undefined || call.tokenId === tokenId) &&
    call.startedMs >= fromMs &&
    call.startedMs < toMs
  )
}

/** Whether a deletion concerns all content that may have been encrypted with a key until now. */
function isConcerned({ tokenId, fromMs, toMs }: ContentDeletion, { day }: DataKeyOwner): boolean {
  const endMs = Math.min((day + 1) * DAY_MS, Date.now())
  return tokenId === undefined && fromMs <= day * DAY_MS && toMs >= endMs
}

/**
 * Adds entries that were written to a bucket to the database. Resolves to the ids of those that must be
 * encrypted again, because a deletion has destroyed their key meanwhile.
 */
async function appended(
  writer: ContentTransaction,
  entries: readonly ContentEntry[],
): Promise<ReadonlySet<string>> {
  const marks = await writer.marks()
  const kept = entries.filter((entry) => !marks.some((mark) => isMarked(mark, entry)))
  const owners = kept.map((entry) => ownerOf({ ...entry, keepMs: entry.expiresMs - entry.startedMs }))
  const keys = new Set((await writer.keysOf(owners)).map(({ id }) => id))
  await writer.append(kept.filter(({ keyId }) => keys.has(keyId)))
  return new Set(kept.filter(({ keyId }) => !keys.has(keyId)).map(({ id }) => id))
}

/** Decrypts an entry to its compressed content; undefined if the encrypted bytes were changed. */
function opened(key: DataKey, { id }: ContentEntryHead, sealed: Buffer): Buffer | undefined {
  try {
    return unsealContent(key, id, sealed)
  } catch {
    return undefined
  }
}

function placeText({ id, object, objectAt }: ContentEntryHead): string {
  return `${id} ${object} ${objectAt}`
}

function ownerOf({
  userId,
  startedMs,
  keepMs,
}: {
  readonly userId: number
  readonly startedMs: number
  readonly keepMs: number
}): DataKeyOwner {
  return { userId, day: dayOf(startedMs), endDay: expiryDayOf(startedMs, keepMs) }
}

function ownerText({ userId, day, endDay }: DataKeyOwner): string {
  return `${userId} ${day} ${endDay}`
}
