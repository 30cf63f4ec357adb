import { LRUCache } from 'lru-cache'
import {
  type BackgroundOutcome,
  idBeginning,
  type Provenance,
  type ReasoningOrigin,
  type StoredContent,
  type StoredResponse,
  type StreamedPart,
} from '../../domain/stored-response.ts'
import { GatewayError } from '../../errors.ts'
import { isLarge, LargeContents, removeParts } from '../../store/kept-contents.ts'
import type { ChainLink, KeptText } from '../../store/operations/stored-responses.ts'
import type { Rows } from '../../store/store.ts'
import type { KeptBound } from './stored-response-limit.ts'
import { RandomText } from './random-text.ts'
import { RetriedWrites } from './write-retries.ts'

/**
 * Minimum and default length of ids that the gateway issues, including the prefix. Shorter ids would have too
 * few random bits.
 */
const MIN_ID_LENGTH = 37
const ID_LENGTH = 49
const MAX_ID_LENGTH = 65
/** Maximum number of keys whose tags are cached: creating a tag costs more than storing it. */
const MAX_KEY_TAGS = 1_000
/** Maximum number of response items whose ids are cached: about ten megabytes. */
const MAX_ITEMS = 50_000
/** Maximum number of items of one response whose ids are cached. */
const MAX_ITEMS_OF_ONE = 100

/** Random texts in ids, with at least 120 bits. */
const DIGITS = new RandomText('hex', MAX_ID_LENGTH)
const CHARACTERS = new RandomText('base64url', ID_LENGTH)

/** Beginning of the ids that are issued in the current millisecond; there can be many. */
const newest = { ms: 0, beginning: idBeginning(0) }

/** Services that the store of responses needs. */
export interface ResponseStoreParts {
  readonly rows: Pick<Rows, 'read' | 'write'>
  /** Computes a keyed hash of a text, to compare the text without storing it. */
  readonly tag: (purpose: 'upstream key' | 'reasoning', text: string) => string
  readonly bound: KeptBound
  /** Called for each kept response that could not be stored and was discarded. */
  readonly onLost: () => void
}

/** Responses to which clients may refer, and the accounts to which they belong. Every node sees the same. */
export class ResponseStore {
  readonly #rows: ResponseStoreParts['rows']
  readonly #tag: ResponseStoreParts['tag']
  readonly #bound: KeptBound
  readonly #retried: RetriedWrites
  readonly #largeContents: LargeContents
  /** Responses by user and item id; created with the first response. */
  #byItem: LRUCache<string, string> | undefined
  readonly #keyTags = new LRUCache<string, string>({ max: MAX_KEY_TAGS })

  constructor({ rows, tag, bound, onLost }: ResponseStoreParts) {
    this.#rows = rows
    this.#tag = tag
    this.#bound = bound
    this.#largeContents = new LargeContents(rows)
    this.#retried = new RetriedWrites(onLost)
  }

  /**
   * Creates an id that cannot be guessed (at least 120 random bits), with `length` characters if possible: an
   * id of the same length as the one that it replaces is written over it without a copy. It begins with the
   * time, so that new rows are adjacent and a commit of many writes few pages.
   */
  static newId(length = ID_LENGTH): string {
    const size = length >= MIN_ID_LENGTH && length <= MAX_ID_LENGTH ? length : ID_LENGTH
    const nowMs = Date.now()
    if (nowMs !== newest.ms) {
      newest.ms = nowMs
      newest.beginning = idBeginning(nowMs)
    }
    const random = size < ID_LENGTH ? CHARACTERS : DIGITS
    return newest.beginning + random.next(size - newest.beginning.length)
  }

  /** Keyed hash of a channel's API key. */
  keyTag(key: string): string {
    let tag = this.#keyTags.get(key)
    if (tag === undefined) this.#keyTags.set(key, (tag = this.#tag('upstream key', key)))
    return tag
  }

  /**
   * Caches the items of a response until others replace them. Only this process knows them, because a row for
   * each would cost more than everything else that a call writes.
   */
  rememberItems(userId: number, itemIds: readonly string[], responseId: string): void {
    if (itemIds.length === 0) return
    const byItem = (this.#byItem ??= new LRUCache({ max: MAX_ITEMS }))
    for (const id of itemIds.slice(-MAX_ITEMS_OF_ONE)) byItem.set(`${userId} ${id}`, responseId)
  }

  /** Id of the response that contains an item of this user; undefined if it is not cached. */
  responseOfItem(userId: number, itemId: string): string | undefined {
    return this.#byItem?.get(`${userId} ${itemId}`)
  }

  /** A response of this user without its content; undefined for any other id. */
  async find(userId: number, id: string): Promise<StoredResponse | undefined> {
    return (await this.facts(userId, id))?.response
  }

  /** A response of this user, with the size of its content in bytes; 0 if it has none. */
  async facts(
    userId: number,
    id: string,
  ): Promise<{ readonly response: StoredResponse; readonly contentBytes: number } | undefined> {
    if (!isIssued(id)) return undefined
    return (await this.#rows.read('responseFacts', { id, userId, nowMs: Date.now() })) ?? undefined
  }

  /**
   * A response of this user and all responses that it continues, the latest first. If there are too many,
   * `MAX_CHAIN` + 1 are returned; if together they are larger than `maxBytes`, only the first one.
   */
  chain(userId: number, id: string, maxBytes: number): Promise<readonly ChainLink[]> {
    return this.#rows.read('responseChain', { id, userId, nowMs: Date.now(), maxBytes })
  }

  /** Reads a part of a kept text. Rejects with `not_found` if it was deleted meanwhile. */
  async part(userId: number, id: string, of: keyof StoredContent, part: number): Promise<KeptText> {
    const found = await this.#rows.read('keptText', { id, userId, nowMs: Date.now(), of, part })
    if (!found) throw new GatewayError('not_found', 'this response is not kept any more')
    return found
  }

  /** A kept text, part by part. */
  async *parts(userId: number, id: string, of: keyof StoredContent): AsyncGenerator<string, void, undefined> {
    for (let index = 0, isLast = false; !isLast; index += 1) {
      const found = await this.part(userId, id, of, index)
      isLast = found.isLast
      yield found.text
    }
  }

  /** Responses of background calls, with their ends and what was streamed, as recorded by all nodes. */
  outcomes(callIds: readonly string[]): Promise<readonly BackgroundOutcome[]> {
    return this.#rows.read('backgroundOutcomes', { callIds })
  }

  /** Stores a response; resolves once that is durable. */
  async store(response: StoredResponse): Promise<void> {
    const { content } = response
    const sum =
      content && isLarge(content)
        ? await this.#largeContents.store({ ...response, content })
        : await this.#rows.write('storeResponse', response)
    if (sum) this.#bound.note([sum])
  }

  /**
   * Stores a kept response whose call has ended. It is retried if the database is unavailable. If there is no
   * room for the response, it is not stored.
   */
  async keep(response: StoredResponse & { readonly content: StoredContent }): Promise<void> {
    const { input, response: output } = response.content
    const size = input.length + output.length
    if (this.#bound.admits('responses', size)) await this.#retried.run(() => this.store(response), size)
  }

  /** Origin of a response, if it is stored, and of its encrypted reasoning: this key. */
  provenance(
    userId: number,
    key: string,
    response: Provenance['response'],
    encrypted: readonly string[],
  ): Provenance {
    const hashes = encrypted.map((content) => this.#hash(userId, content))
    return {
      keyTag: this.keyTag(key),
      response,
      reasoning: hashes.length > 1 ? [...new Set(hashes)] : hashes,
    }
  }

  /** The account that created the first known of these encrypted contents. */
  async originOf(userId: number, contents: readonly string[]): Promise<ReasoningOrigin | undefined> {
    const hashes = contents.map((content) => this.#hash(userId, content))
    const known = await this.#rows.read('reasoningOrigins', { hashes, nowMs: Date.now() })
    const byHash = new Map(known.map((origin) => [origin.hash, origin]))
    return hashes.map((hash) => byHash.get(hash)).find((origin) => origin !== undefined)
  }

  /** Records how a background response ended, for the node that has its hold. */
  async noteOutcome(id: string, outcome: string): Promise<void> {
    await this.#rows.write('noteOutcome', { id, outcome })
  }

  /** Records that a part of a background response was streamed to a client. */
  async noteStreamed(id: string, part: StreamedPart): Promise<void> {
    await this.#rows.write('noteStreamed', { id, part })
  }

  /** Deletes a response of this user. */
  async remove(userId: number, id: string): Promise<void> {
    await this.#rows.write('deleteResponse', { userId, id, nowMs: Date.now() })
    await removeParts(this.#rows, id)
  }

  #hash(userId: number, content: string): string {
    return this.#tag('reasoning', `${userId}\n${content}`)
  }
}

/** Reports whether an id can be one of the gateway's; others need no look-up. */
function isIssued(id: string): boolean {
  return /^resp_[\w-]{1,60}$/.test(id)
}
