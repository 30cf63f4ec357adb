import { randomBytes } from 'node:crypto'
import { seal, type Secrets, unseal } from '../store/secrets.ts'
import { compress, decompress, type DataKey, digestOf, sealContent, unsealContent } from './entries.ts'
import { contentFacts } from './content-facts.ts'
import { redactedContent } from './redact-content.ts'
import type {
  BatchedCall,
  ContentBatch,
  ContentDeletion,
  ContentSummary,
  ContentWork,
  ReadContent,
} from './messages.ts'
import { DAY_MS, dayOf, dropDayOf, endDayOf } from './retention.ts'
import type { DeletionMark, EntryHead, KeyOwner, Shelf, ShelfWriter, StoredKey } from './shelf.ts'

/** Time for which deletions are remembered, because content of their period may still arrive. */
const MARK_MS = 2 * DAY_MS
const KEY_BYTES = 32

/** A call's content, compressed. */
interface Packed {
  readonly call: BatchedCall
  readonly bytes: number
  readonly sha256: string
  readonly lengths: string
  readonly compressed: Buffer
}

/** Encrypts, keeps, finds and deletes content. Runs in a thread of its own. */
export class ContentKeeper implements ContentWork {
  readonly #shelf: Shelf
  readonly #secrets: Secrets

  constructor(shelf: Shelf, secrets: Secrets) {
    this.#shelf = shelf
    this.#secrets = secrets
  }

  async write({ calls, bytes }: ContentBatch): Promise<void> {
    const packed = packedCalls(calls, bytes)
    await this.#shelf.write(async (writer) => {
      const marks = await writer.marks()
      const kept = packed.filter(({ call }) => !marks.some((mark) => isMarked(mark, call)))
      const keys = await this.#currentKeys(writer, kept.map(ownerOf))
      await writer.append(
        kept.map((one) => {
          const { call, compressed, ...facts } = one
          const { id, userId, tokenId, startedMs, keepMs, what } = call
          const key = keys.get(ownerText(ownerOf(one)))!
          const dropDay = dropDayOf(startedMs, keepMs)
          const head = {
            id,
            userId,
            tokenId,
            startedMs,
            expiresMs: startedMs + keepMs,
            what,
            keyId: key.id,
            dropDay,
          }
          return { ...facts, ...head, sealed: sealContent(key, id, compressed) }
        }),
      )
    })
  }

  async find(ids: readonly string[]): Promise<readonly ContentSummary[]> {
    const heads = await this.#readable(await this.#shelf.heads(ids))
    return heads.map(({ head }) => this.#summaryOf(head))
  }

  redact(part: Uint8Array): Promise<Uint8Array> {
    return Promise.resolve(redactedContent(Buffer.from(part.buffer, part.byteOffset, part.length)))
  }

  async read(id: string): Promise<ReadContent | undefined> {
    const [found] = await this.#readable(await this.#shelf.heads([id]))
    if (!found) return undefined
    const { head, key } = found
    const sealed = await this.#shelf.sealedOf(head)
    if (!sealed) return undefined
    const content = decompress(unsealContent(this.#dataKey(key), id, sealed), head.bytes)
    return {
      ...this.#summaryOf(head),
      lengths: JSON.parse(head.lengths) as number[],
      content: new Uint8Array(content),
    }
  }

  async delete(deletion: ContentDeletion): Promise<boolean> {
    const atMs = Date.now()
    // From here on nothing of it can be read, and content that is still on its way is not kept.
    const id = await this.#shelf.write(async (writer) => writer.addMark(deletion, atMs))
    return this.#remove({ ...deletion, id })
  }

  async prune(): Promise<{ readonly removedContents: number }> {
    for (const mark of await this.#shelf.marks()) if (!mark.isDone) await this.#remove(mark)
    const nowMs = Date.now()
    return { removedContents: await this.#shelf.prune(dayOf(nowMs), nowMs - MARK_MS) }
  }

  close(): Promise<void> {
    return this.#shelf.close()
  }

  /**
   * Destroys the keys of everything that a deletion concerns. What else they open is encrypted anew first, under
   * new keys, which are durable before the former ones are gone.
   */
  async #remove(mark: ContentDeletion & { readonly id: number }): Promise<boolean> {
    const { userId, fromMs, toMs } = mark
    const [fromDay, toDay] = [dayOf(fromMs), dayOf(Math.max(fromMs, toMs - 1))]
    // From now on calls of these users and days are kept under the new keys.
    const successors = await this.#shelf.write(async (writer) => {
      const made = new Map<string, DataKey>()
      for (const key of await writer.keysOfUser(userId, fromDay, toDay)) {
        const entries = await writer.entriesOfKey(key.id)
        if (entries.some((entry) => isMarked(mark, entry))) made.set(key.id, await this.#newKey(writer, key))
      }
      return made
    })
    return this.#shelf.write(async (writer) => {
      const gone: string[] = []
      let isWhole = true
      for (const key of await writer.keysOfUser(userId, fromDay, toDay)) {
        const successor = successors.get(key.id)
        if (!successor) {
          // Another deletion has put entries under this key meanwhile: the mark stays, and is carried out later.
          const entries = await writer.entriesOfKey(key.id)
          if (entries.some((entry) => isMarked(mark, entry))) isWhole = false
          continue
        }
        for (const entry of await writer.entriesOfKey(key.id))
          if (!isMarked(mark, entry)) await this.#reseal(writer, entry, key, successor)
        gone.push(key.id)
      }
      await writer.removeEntriesOfKeys(gone)
      await writer.removeKeys(gone)
      if (isWhole) await writer.finishMark(mark.id)
      return gone.length > 0
    })
  }

  async #reseal(writer: ShelfWriter, entry: EntryHead, key: StoredKey, successor: DataKey): Promise<void> {
    const sealed = await writer.sealedOf(entry)
    if (!sealed) return
    const compressed = unsealContent(this.#dataKey(key), entry.id, sealed)
    await writer.replace(entry, successor.id, sealContent(successor, entry.id, compressed))
  }

  /** The entries that can be read now, with their keys. */
  async #readable(
    heads: readonly EntryHead[],
  ): Promise<readonly { readonly head: EntryHead; readonly key: StoredKey }[]> {
    if (heads.length === 0) return []
    const [keys, marks] = await Promise.all([
      this.#shelf.keys([...new Set(heads.map(({ keyId }) => keyId))]),
      this.#shelf.marks(),
    ])
    const byId = new Map(keys.map((key) => [key.id, key]))
    const nowMs = Date.now()
    return heads.flatMap((head) => {
      const key = byId.get(head.keyId)
      const isGone = head.expiresMs <= nowMs || marks.some((mark) => isMarked(mark, head))
      return key && !isGone ? [{ head, key }] : []
    })
  }

  #summaryOf(head: EntryHead): ContentSummary {
    const { id, userId, what, sha256, bytes } = head
    const address = this.#shelf.addressOf(head)
    return { id, userId, what: what as ContentSummary['what'], address, sha256, bytes }
  }

  async #currentKeys(
    writer: ShelfWriter,
    owners: readonly KeyOwner[],
  ): Promise<ReadonlyMap<string, DataKey>> {
    const distinct = new Map(owners.map((owner) => [ownerText(owner), owner]))
    const stored = await writer.keysOf([...distinct.values()])
    const keys = new Map(stored.map((key) => [ownerText(key), this.#dataKey(key)]))
    for (const [name, owner] of distinct)
      if (!keys.has(name)) keys.set(name, await this.#newKey(writer, owner))
    return keys
  }

  async #newKey(writer: ShelfWriter, { userId, day, endDay }: KeyOwner): Promise<DataKey> {
    const made = { id: randomBytes(12).toString('hex'), key: randomBytes(KEY_BYTES) }
    const cipher = seal(this.#secrets, made.key.toString('base64'), { table: 'content', row: made.id })
    await writer.addKeys([{ id: made.id, userId, day, endDay, cipher }])
    return made
  }

  #dataKey({ id, cipher }: StoredKey): DataKey {
    return { id, key: Buffer.from(unseal(this.#secrets, cipher, { table: 'content', row: id }), 'base64') }
  }
}

/** Whether a deletion concerns a call. */
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

function ownerOf({ call: { userId, startedMs, keepMs } }: Packed): KeyOwner {
  return { userId, day: dayOf(startedMs), endDay: endDayOf(startedMs, keepMs) }
}

function ownerText({ userId, day, endDay }: KeyOwner): string {
  return `${userId} ${day} ${endDay}`
}

/** The calls of a batch, reduced to what is kept of them, and compressed. */
function packedCalls(calls: readonly BatchedCall[], bytes: Uint8Array): Packed[] {
  let at = 0
  return calls.map((call) => {
    const length = call.lengths.reduce((sum, part) => sum + Math.max(0, part), 0)
    const content = bytes.subarray(at, at + length)
    at += length
    if (call.what !== 'metadata') {
      const kept =
        call.what === 'redacted' ? redactedParts(content, call.lengths) : { content, lengths: call.lengths }
      const { length: size } = kept.content
      const lengths = JSON.stringify(kept.lengths)
      return {
        call,
        bytes: size,
        sha256: digestOf(kept.content),
        lengths,
        compressed: compress(kept.content),
      }
    }
    const sha256 = digestOf(content)
    const facts = Buffer.from(JSON.stringify(contentFacts(content, call.lengths)))
    return { call, bytes: facts.length, sha256, lengths: '[]', compressed: compress(facts) }
  })
}

/** The parts of a content, each without secrets and personal data. */
function redactedParts(
  content: Uint8Array,
  lengths: readonly number[],
): { readonly content: Buffer; readonly lengths: readonly number[] } {
  let at = 0
  const parts = lengths.map((length) => {
    if (length < 0) return undefined
    const part = redactedContent(Buffer.from(content.buffer, content.byteOffset + at, length))
    at += length
    return part
  })
  return {
    content: Buffer.concat(parts.filter((part) => part !== undefined)),
    lengths: parts.map((part) => part?.length ?? -1),
  }
}
