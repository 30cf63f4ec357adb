import type { Conversation, Part, TextPart, ThinkingPart, ToolCallPart, Turn } from '../conversation.ts'
import {
  callAnchor,
  digestsByTurn,
  type SignedParts,
  type SignedElement,
  textAnchor,
  textOf,
} from './signed-parts.ts'

/**
 * Anchors (see `SignedParts`) of an assistant turn that the client sent back without signatures: one for each
 * tool call, or that of its text if it has no calls.
 */
type TurnAnchors = readonly string[]

/** Finds the assistant turns that the client sent back without the parts that the model had signed. */
export class UnsignedTurnFinder {
  readonly #conversation: Conversation
  #contexts: readonly string[] | undefined
  readonly #unsigned: ReadonlyMap<number, TurnAnchors>

  constructor(conversation: Conversation) {
    this.#conversation = conversation
    this.#unsigned = new Map(
      conversation.turns.flatMap((turn, index) => {
        if (turn.role !== 'assistant' || turn.parts.some(isSigned)) return []
        return [[index, this.#anchorsOf(turn, index)] as const]
      }),
    )
  }

  /** Digest of the conversation. The anchor of the reply to it depends on this digest. */
  get context(): string {
    return this.#contextAt(this.#conversation.turns.length)
  }

  /**
   * Anchors of the turns without signatures, in order. An anchor is the key under which signed parts are
   * stored.
   */
  get anchors(): readonly string[] {
    return [...this.#unsigned.values()].flat()
  }

  /**
   * Returns the conversation with the signed parts that `find` returns put back; the same object if `find`
   * returns none.
   */
  restored(find: FindRun): Conversation {
    let isChanged = false
    const turns = this.#conversation.turns.map((turn, index) => {
      const anchors = this.#unsigned.get(index)
      if (!anchors) return turn
      const parts = restoredParts(turn.parts, find, anchors)
      isChanged ||= parts !== turn.parts
      return parts === turn.parts ? turn : { ...turn, parts }
    })
    return isChanged ? { ...this.#conversation, turns } : this.#conversation
  }

  // The digests are computed only when needed, because most conversations and replies do not need one.
  #contextAt(index: number): string {
    this.#contexts ??= digestsByTurn(this.#conversation)
    return this.#contexts[index] ?? ''
  }

  #anchorsOf(turn: Turn, index: number): TurnAnchors {
    const context = (): string => this.#contextAt(index)
    const calls = turn.parts.filter((part) => part.kind === 'tool-call')
    if (calls.length > 0) return calls.map((call) => callAnchor(call, context))
    const anchor = textAnchor(context(), textOf(turn))
    return anchor === undefined ? [] : [anchor]
  }
}

/** Whether a part that the client sent back is signed by a provider. */
function isSigned(part: Turn['parts'][number]): boolean {
  return part.kind === 'opaque' || (part.kind === 'thinking' && part.proof !== undefined)
}

/** Returns the signed parts that are stored under an anchor. */
type FindRun = (anchor: string) => SignedParts | undefined

/** A part of an assistant turn that is not a thought. */
type PlainPart = Exclude<Part, ThinkingPart>

/**
 * Puts signed parts back into a turn. If the texts have their original total length, every signed part gets
 * its original position, and texts that the client joined are separated again. Otherwise signed parts are put
 * before the text that precedes their tool call.
 */
function restoredParts(parts: readonly Part[], find: FindRun, anchors: TurnAnchors): readonly Part[] {
  const plain = parts.filter((part): part is PlainPart => part.kind !== 'thinking')
  const calls = plain.filter(({ kind }) => kind === 'tool-call') as ToolCallPart[]
  const runs = anchors.map(find)
  if (!runs.some((run) => run !== undefined)) return parts
  return isUnchanged(plain, runs) ? exactly(plain, calls, runs) : roughly(plain, calls, runs)
}

function isUnchanged(parts: readonly PlainPart[], runs: readonly (SignedParts | undefined)[]): boolean {
  let length = 0
  for (const part of parts) {
    if (part.kind === 'text') length += part.text.length
    else if (part.kind !== 'tool-call') return false
  }
  for (const run of runs)
    for (const slot of [...(run?.before ?? []), ...(run?.after ?? [])])
      if (slot.kind === 'said') length -= slot.length
  return length === 0
}

function exactly(
  parts: readonly PlainPart[],
  calls: readonly ToolCallPart[],
  runs: readonly (SignedParts | undefined)[],
): Part[] {
  const texts = new TextQueue(parts.filter((part): part is TextPart => part.kind === 'text'))
  const place = (slots: readonly SignedElement[]): Part[] =>
    slots.flatMap((slot): Part[] => (slot.kind === 'said' ? texts.take(slot.length) : [slot]))
  return runs.flatMap((run, index) => {
    const before = place(run?.before ?? [])
    const call = calls[index]
    return [...before, ...(call ? [call] : []), ...place(run?.after ?? [])]
  })
}

function roughly(
  parts: readonly PlainPart[],
  calls: readonly ToolCallPart[],
  runs: readonly (SignedParts | undefined)[],
): Part[] {
  if (calls.length === 0) {
    const signed = signedIn(runs[0]?.before)
    const isBehind = (part: Part): boolean => part.kind === 'thinking' && part.proof?.signs === 'text'
    return [...signed.filter((part) => !isBehind(part)), ...parts, ...signed.filter(isBehind)]
  }
  const restored: Part[] = []
  let segment: Part[] = []
  let next = 0
  for (const part of parts) {
    segment.push(part)
    if (part.kind !== 'tool-call') continue
    const run = runs[next++]
    restored.push(...signedIn(run?.before), ...segment, ...signedIn(run?.after))
    segment = []
  }
  return [...restored, ...segment]
}

function signedIn(slots: readonly SignedElement[] = []): Part[] {
  return slots.filter((slot) => slot.kind !== 'said')
}

/** The texts of a turn, from which pieces of a given length are taken. */
class TextQueue {
  readonly #texts: TextPart[]

  constructor(texts: readonly TextPart[]) {
    this.#texts = texts.filter(({ text }) => text !== '')
  }

  /** Takes the next `length` UTF-16 code units. A cache mark stays at the end of its text. */
  take(length: number): TextPart[] {
    const taken: TextPart[] = []
    for (let left = length; left > 0; ) {
      const first = this.#texts.shift()
      if (!first) break
      if (first.text.length <= left) taken.push(first)
      else {
        taken.push({ kind: 'text', text: first.text.slice(0, left) })
        this.#texts.unshift({ ...first, text: first.text.slice(left) })
      }
      left -= Math.min(left, first.text.length)
    }
    return taken
  }
}
