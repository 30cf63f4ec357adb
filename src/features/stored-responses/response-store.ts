import { LRUCache } from 'lru-cache'
import {
  type BackgroundOutcome,
  type Provenance,
  type ReasoningOrigin,
  type StoredContent,
  type StoredResponse,
  type StreamedPart,
} from '../../domain/stored-response.ts'
import { KEPT_PART_BYTES } from '../../domain/kept.ts'
import { OwnedEntries } from '../../domain/owned-entries.ts'
import type { KeptStore } from '../../store/kept-store.ts'
import type { ResponseChainLink } from '../../store/operations/stored-responses.ts'
import { RetriedWrites } from '../../store/retried-writes.ts'
import type { RowStore } from '../../store/store.ts'
import { isGatewayResponseId } from '../../call/response-id.ts'
import { type ContentFacts, StoredText } from './stored-text.ts'

/** Maximum number of API keys whose keyed hashes are cached: computing a hash costs more than keeping it. */
const MAX_KEY_TAGS = 1_000
/** Maximum number of response items whose ids are cached; they take about ten megabytes. */
const MAX_ITEMS = 50_000
/** Maximum number of items of one response whose ids are cached. */
const MAX_ITEMS_OF_ONE = 100

/** Services that the store of responses needs. */
export interface ResponseStoreDependencies {
  readonly rows: Pick<RowStore, 'read' | 'write'>
  /** Computes a keyed hash of a text, to compare the text without storing it. */
  readonly tag: (purpose: 'upstream key' | 'reasoning', text: string) => string
  readonly kept: KeptStore
  /** Called for each kept response that could not be stored and was discarded. */
  readonly onLost: () => void
}

/** A response that the gateway keeps, with its input and output. */
export interface KeptResponse {
  readonly response: StoredResponse
  readonly content: StoredContent
}

/**
 * Stores responses to which clients may refer, and the provider accounts that created them. All nodes share
 * them.
 */
export class ResponseStore {
  readonly #rows: ResponseStoreDependencies['rows']
  readonly #tag: ResponseStoreDependencies['tag']
  readonly #kept: KeptStore
  readonly #retried: RetriedWrites
  readonly #onLost: () => void
  /** Responses by user and item id. */
  readonly #byItem = new OwnedEntries<number, string>()
  readonly #keyTags = new LRUCache<string, string>({ max: MAX_KEY_TAGS })

  constructor({ rows, tag, kept, onLost }: ResponseStoreDependencies) {
    this.#rows = rows
    this.#tag = tag
    this.#kept = kept
    this.#onLost = onLost
    this.#retried = new RetriedWrites(onLost)
  }

  /** Keyed hash of a channel's API key. */
  keyTag(key: string): string {
    let tag = this.#keyTags.get(key)
    if (tag === undefined) this.#keyTags.set(key, (tag = this.#tag('upstream key', key)))
    return tag
  }

  /**
   * Remembers in this process which response contains these items, until newer items replace them, in fair
   * shares of the users. They are not stored, because a row for each item would cost more than everything else
   * that a call writes.
   */
  rememberItems(userId: number, itemIds: readonly string[], responseId: string): void {
    for (const id of itemIds.slice(-MAX_ITEMS_OF_ONE)) this.#byItem.set(userId, id, responseId, MAX_ITEMS)
  }

  /** Id of the response that contains an item of this user; undefined if it is not cached. */
  responseOfItem(userId: number, itemId: string): string | undefined {
    return this.#byItem.get(userId, itemId)
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
    if (!isGatewayResponseId(id)) return undefined
    return (await this.#rows.read('responseFacts', { id, userId, nowMs: Date.now() })) ?? undefined
  }

  /**
   * A response of this user and all responses that it continues, the latest first. If there are too many, the
   * first `MAX_PREVIOUS_RESPONSES` + 1 are returned; if together they exceed `maxBytes`, only the latest one.
   */
  chain(userId: number, id: string, maxBytes: number): Promise<readonly ResponseChainLink[]> {
    return this.#rows.read('responseChain', { id, userId, nowMs: Date.now(), maxBytes })
  }

  /** The input or output of a response that the gateway keeps. */
  text(userId: number, id: string, of: keyof StoredContent): StoredText {
    return new StoredText(this.#kept, userId, id, of)
  }

  /**
   * How the responses of background calls ended, and how much of them was streamed, as recorded by all nodes.
   */
  outcomes(callIds: readonly string[]): Promise<readonly BackgroundOutcome[]> {
    return this.#rows.read('backgroundOutcomes', { callIds })
  }

  /** Stores a response that the provider has; resolves once that is durable. */
  async store(response: StoredResponse): Promise<void> {
    await this.#rows.write('storeResponse', response)
  }

  /**
   * Stores a response that the gateway keeps, after its call was charged. The write is retried if the database
   * is unavailable. If there is no room for the response, it is not stored. Never rejects: what is charged is
   * delivered, so a response that cannot be read (`made` throws) or stored is counted as lost. `made` returns
   * undefined if there is nothing to store.
   */
  async keep(made: () => KeptResponse | undefined): Promise<void> {
    try {
      const kept = made()
      if (kept) await this.#store(kept)
    } catch {
      this.#onLost()
    }
  }

  async #store({ response, content }: KeptResponse): Promise<void> {
    const { id: key, userId, model, createdMs, expiresMs } = response
    const inputBytes = Buffer.byteLength(content.input)
    const bytes = inputBytes + Buffer.byteLength(content.response)
    if (!this.#kept.admits('response', bytes)) return
    const about = { key, userId, model, tokenId: 0, createdMs, expiresMs, record: response }
    // Content of up to one part is stored with the facts, because a separate row would cost more.
    const write = (): Promise<boolean> =>
      bytes <= KEPT_PART_BYTES
        ? this.#kept.write({ kind: 'response', ...about, facts: JSON.stringify(content), bytes })
        : this.#kept.write(
            { kind: 'response', ...about, facts: JSON.stringify({ inputBytes } satisfies ContentFacts) },
            bytesOf([content.input, content.response]),
          )
    await this.#retried.run(async () => void (await write()), bytes)
  }

  /**
   * Returns what is stored with a call's charge: the response, if clients may refer to it, and the key that
   * created the response and its encrypted reasoning.
   */
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

  /**
   * Looks up several pieces of encrypted reasoning, and resolves to the provider account that created the
   * first known one in the given order.
   */
  async originOf(userId: number, contents: readonly string[]): Promise<ReasoningOrigin | undefined> {
    const hashes = contents.map((content) => this.#hash(userId, content))
    const known = await this.#rows.read('reasoningOrigins', { hashes, nowMs: Date.now() })
    const byHash = new Map(known.map((origin) => [origin.hash, origin]))
    return hashes.map((hash) => byHash.get(hash)).find((origin) => origin !== undefined)
  }

  /** Records how a background response ended, for the node that holds its call's quota. */
  async recordOutcome(id: string, outcome: string): Promise<void> {
    await this.#rows.write('recordOutcome', { id, outcome })
  }

  /** Records that a part of a background response was streamed to a client. */
  async recordStreamedPart(id: string, part: StreamedPart): Promise<void> {
    await this.#rows.write('recordStreamedPart', { id, part })
  }

  /** Deletes a response of this user. */
  async remove(userId: number, id: string): Promise<void> {
    // The content goes first, together with its row: without that row it could not be deleted any more.
    await this.#kept.remove({ kind: 'response', key: id, userId })
    await this.#rows.write('deleteResponse', { userId, id, nowMs: Date.now() })
  }

  #hash(userId: number, content: string): string {
    return this.#tag('reasoning', `${userId}\n${content}`)
  }
}

/** Encodes texts piece by piece. Surrogate pairs are not split, because each piece is encoded separately. */
function* bytesOf(texts: readonly string[]): Generator<Buffer, void, undefined> {
  for (const text of texts)
    for (let start = 0; start < text.length; ) {
      const end = start + KEPT_PART_BYTES
      const cutsPair = end < text.length && (text.codePointAt(end - 1) ?? 0) > 0xffff
      yield Buffer.from(text.slice(start, cutsPair ? end - 1 : end))
      start = cutsPair ? end - 1 : end
    }
}
