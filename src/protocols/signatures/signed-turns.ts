import type { Conversation, Turn } from '../conversation.ts'
import { callAnchor, contextsOf, textAnchor, textOf } from './anchors.ts'
import { type FindRun, restoredParts } from './restored-turn.ts'

/** Turn that came back without signatures. */
interface UnsignedTurn {
  readonly calls: readonly string[]
  /** Anchor of a turn without calls. */
  readonly text: string | undefined
}

/** A conversation's turns of the assistant that came back without what its model signed. */
export class SignedTurns {
  readonly #conversation: Conversation
  #contexts: readonly string[] | undefined
  readonly #unsigned: ReadonlyMap<number, UnsignedTurn>

  constructor(conversation: Conversation) {
    this.#conversation = conversation
    this.#unsigned = new Map(
      conversation.turns.flatMap((turn, index) => {
        if (turn.role !== 'assistant' || turn.parts.some(isSigned)) return []
        return [[index, this.#unsignedTurn(turn, index)] as const]
      }),
    )
  }

  /** Digest of the conversation, for the anchor of the reply to it. */
  get context(): string {
    return this.#contextAt(this.#conversation.turns.length)
  }

  /** Anchors of these turns, in their order. */
  get anchors(): readonly string[] {
    return [...this.#unsigned.values()].flatMap(({ calls, text }) =>
      text === undefined ? calls.map(callAnchor) : [text],
    )
  }

  /** The conversation with all signed parts that `find` knows; the same object if it knows none. */
  restored(find: FindRun): Conversation {
    let isChanged = false
    const turns = this.#conversation.turns.map((turn, index) => {
      const unsigned = this.#unsigned.get(index)
      if (!unsigned) return turn
      const parts = restoredParts(turn.parts, find, unsigned.text)
      isChanged ||= parts !== turn.parts
      return parts === turn.parts ? turn : { ...turn, parts }
    })
    return isChanged ? { ...this.#conversation, turns } : this.#conversation
  }

  // Most conversations and replies have nothing that is found by a digest.
  #contextAt(index: number): string {
    this.#contexts ??= contextsOf(this.#conversation)
    return this.#contexts[index] ?? ''
  }

  #unsignedTurn(turn: Turn, index: number): UnsignedTurn {
    const calls = turn.parts.flatMap((part) => (part.kind === 'tool-call' ? [part.id] : []))
    return { calls, text: calls.length > 0 ? undefined : textAnchor(this.#contextAt(index), textOf(turn)) }
  }
}

/** Whether the client sent something back that a provider made. */
function isSigned(part: Turn['parts'][number]): boolean {
  return part.kind === 'opaque' || (part.kind === 'thinking' && part.proof !== undefined)
}
