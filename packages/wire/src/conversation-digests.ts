import { hash, type KeyObject } from 'node:crypto'
import {
  type ConversationComparisonRules,
  DigestWalk,
  bytePartsAt,
  DigestSpans,
  type TurnEndCounts,
} from './conversation-walk.ts'
import { gmacOf } from './gmac.ts'
import type { ScannedObject } from './json/scanned-object.ts'
import { MESSAGE_TOKENS } from './prompt-tokens.ts'

export type { ConversationComparisonRules } from './conversation-walk.ts'

/** Size of a digest in bytes. */
const DIGEST_BYTES = 24
/**
 * Size in bytes of a mark, the part at the beginning of a digest by which conversations are found quickly.
 */
const MARK_BYTES = 4
/** Number of bytes of a turn that its mark depends on, taken at equal distances. */
const SAMPLED_BYTES = 8
/**
 * Number of turns at the beginning (including the head) whose first bytes the mark depends on as well,
 * because conversations differ there first.
 */
const BEGINNING_TURNS = 4
const BEGINNING_BYTES = 128
/**
 * Maximum size in bytes of texts that are hashed directly with SHA-256. For these it is cheaper than creating
 * the objects for a GMAC.
 */
const MAX_HASHED_BYTES = 8_192

/** Size of tools, system prompt and messages in bytes below which providers do not cache a text: 1,024 tokens. */
const MIN_CACHED_BYTES = 4_096

/**
 * What all digests of one scope depend on: a text that begins with a secret of fixed length, and a 32-bit
 * number that depends on the same data.
 */
export interface DigestSeed {
  readonly text: string
  readonly mark: number
}

/** Conversations with different scopes are not compared with each other. */
export interface DigestScope {
  /** Secret of 32 bytes. */
  readonly key: KeyObject
  /** Makes the digests and marks of different scopes differ: digests depend on `text`, marks on `mark`. */
  readonly seed: DigestSeed
  /** The name of the model, on which the maximum number of tokens of an image depends. */
  readonly model: string
}

/**
 * Digests of a conversation at the end of each turn. A digest covers everything that the model reads up to
 * there: system prompt, tools, unknown members and turns as they are written, without cache marks. It is
 * computed when needed. Its first 32 bits are the mark, which depends only on the seed, the turn, the length
 * and a few bytes, so computing it costs almost nothing.
 *
 * A digest is the SHA-256 of the seed and the bytes, or of the GMAC of the bytes if there are many. Finding two
 * texts with the same GMAC requires the secret key; only the SHA-256 is stored.
 * `docs/decisions/prompt-digests.md`
 */
export class ConversationDigests {
  readonly turns: number
  readonly #scope: DigestScope
  readonly #scan: ScannedObject
  readonly #spans: readonly number[]
  /**
   * Byte and token counts up to the end of each turn. The first entry is for the head, which is everything
   * before the turns.
   */
  readonly #ends: readonly TurnEndCounts[]
  /**
   * A number for each turn, from which its mark is computed. It depends on the sampled bytes up to the end of
   * the turn; undefined until it is needed.
   */
  #samples: Uint32Array | undefined

  constructor(scan: ScannedObject, form: ConversationComparisonRules, scope: DigestScope) {
    const spans = new DigestSpans()
    const walk = new DigestWalk(scan, form, scope.model)
    const turns = walk.turns()
    walk.head(spans)
    const ends = [walk.endAt(spans)]
    for (const [index, turn] of turns.entries()) {
      walk.turn(spans, turn, turns[index - 1])
      ends.push(walk.endAt(spans))
    }
    this.turns = turns.length
    this.#scope = scope
    this.#scan = scan
    this.#spans = spans.offsets
    this.#ends = ends
  }

  /** The first 32 bits of the digest at the end of a turn. Turns count from 1. */
  mark(turn: number): number {
    const { bytes } = this.#at(turn)
    const sample = (this.#samples ??= this.#sampled())[turn] as number
    return mixed(Math.imul(bytes, 0x9e37_79b1) ^ mixed(this.#scope.seed.mark ^ turn ^ sample))
  }

  /** The digest at the end of a turn. It begins with the mark. */
  digest(turn: number): Buffer {
    const { key, seed } = this.#scope
    const { spans, end, bytes: length } = this.#at(turn)
    const parts = bytePartsAt(this.#scan.bytes, this.#spans, spans - 2)
    parts.push(this.#scan.bytes.subarray(this.#spans[spans - 2], end))
    const facts = `${seed.text}${turn} ${this.#at(0).bytes} ${length} `
    const covered = Buffer.concat([Buffer.from(facts), ...keyedHashInput(parts, key)])
    const digest = Buffer.allocUnsafe(DIGEST_BYTES)
    digest.writeUInt32LE(this.mark(turn))
    digest.write(hash('sha256', covered, 'hex'), MARK_BYTES, DIGEST_BYTES - MARK_BYTES, 'hex')
    return digest
  }

  /**
   * Maximum number of tokens of the whole prompt, if the prompt up to the end of this turn has `tokens`
   * tokens.
   */
  bound(turn: number, tokens: number): number {
    const known = this.#at(turn)
    const all = this.#at(this.turns)
    const appended = this.#scan.end - known.bytes + (this.turns - turn) * MESSAGE_TOKENS
    return tokens + appended + (all.beyondBytes - known.beyondBytes) + known.elsewhere
  }

  /** Number of bytes of text, without media, up to the end of this turn. */
  textBytes(turn: number): number {
    const { bytes, mediaBytes } = this.#at(turn)
    return bytes - mediaBytes
  }

  // Some bytes of each turn are sampled, because otherwise conversations of the same length would have the
  // same marks, for example those of a batch of similar tasks.
  #sampled(): Uint32Array {
    const samples = new Uint32Array(this.#ends.length)
    let sample = 0
    for (const [turn, end] of this.#ends.entries()) {
      const before = this.#ends[turn - 1] ?? { bytes: 0, spans: 0, end: 0 }
      const length = end.bytes - before.bytes
      const begin = turn < BEGINNING_TURNS ? Math.min(BEGINNING_BYTES, length) : 0
      const step = Math.max(1, Math.ceil((length - begin) / SAMPLED_BYTES))
      /**
       * `next` is the position in the turn of the next sampled byte, `at` the position in the turn at which
       * the current span begins.
       */
      let next = 0
      let at = 0
      // The last span of the previous turn may continue into this turn.
      for (let i = Math.max(0, before.spans - 2); i < end.spans; i += 2) {
        const start = i < before.spans ? before.end : (this.#spans[i] as number)
        const size = (i + 2 === end.spans ? end.end : (this.#spans[i + 1] as number)) - start
        for (; next < at + size; next += next < begin ? 1 : step)
          sample = Math.imul(sample ^ (this.#scan.bytes[start + next - at] as number), 0x0100_0193)
        at += size
      }
      samples[turn] = mixed(sample)
    }
    return samples
  }

  #at(turn: number): TurnEndCounts {
    return this.#ends[turn] as TurnEndCounts
  }
}

/**
 * Returns the input of a keyed hash of a text that consists of `parts`: the parts themselves, or their GMAC
 * if they are large. `key` is a secret of 32 bytes. `docs/decisions/prompt-digests.md`
 */
export function keyedHashInput(parts: readonly Buffer[], key: KeyObject): readonly Buffer[] {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  return length <= MAX_HASHED_BYTES ? parts : [gmacOf(parts, key)]
}

/** Mixes the bits of a number, so that each bit affects the whole result. */
function mixed(value: number): number {
  let bits = value
  bits = Math.imul(bits ^ (bits >>> 16), 0x85eb_ca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2_ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}

/**
 * The bytes of the beginning of a conversation: tools, system texts, and the first turn that is not an
 * instruction, without cache marks. A text and a list with one text part give the same bytes. Undefined if
 * there is no such turn.
 */
export function conversationOpening(
  scan: ScannedObject,
  form: ConversationComparisonRules,
): readonly Buffer[] | undefined {
  const { offsets } = new DigestWalk(scan, form, '').opening() ?? {}
  return offsets && bytePartsAt(scan.bytes, offsets, offsets.length)
}

/**
 * Whether a conversation is long enough for a provider to cache it, or may be because it has media or continues
 * something stored elsewhere.
 */
export function mayBeCached(scan: ScannedObject, form: ConversationComparisonRules): boolean {
  const walk = new DigestWalk(scan, form, '')
  return walk.receivedBytes() >= MIN_CACHED_BYTES || form.isUnforeseeable?.(scan) === true || walk.hasMedia()
}

/** Whether a request has at least one of these top-level members with a value other than null. */
export function hasAnyMember(scan: ScannedObject, names: readonly string[]): boolean {
  return names.some((name) => {
    const member = scan.span(name)
    return member !== undefined && scan.kindOf(member.node) !== 'null'
  })
}

/** Whether a provider may replace a part of the prompt by a summary. */
export function mayCompactPrompt(scan: ScannedObject): boolean {
  const member = scan.span('context_management')
  return member !== undefined && scan.textOf(member.node).includes('compact')
}

/** Returns the names except the excluded ones. */
export function namesExcept(names: Iterable<string>, except: readonly string[]): ReadonlySet<string> {
  const others = new Set(names)
  for (const name of except) others.delete(name)
  return others
}
