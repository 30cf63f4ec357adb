import { membersOf, objectOf } from '../json/json-text.ts'
import type { Proof } from '../conversation.ts'
import type { ReplyPart } from '../reply.ts'
import { inputObject } from '../tool-input.ts'
import { writeOpaque, writeSignature } from './signature.ts'

/** Empty part. Clients discard an answer, or its last chunk, that has no part. */
export const EMPTY_PART = '{"text":""}'

/** Renders the parts of an answer. The signature of a call is kept until its call. */
export class PartWriter {
  #callSignature: string | undefined

  /** Renders a complete part as JSON text; undefined if it is empty. */
  write(part: ReplyPart): string | undefined {
    switch (part.kind) {
      case 'text':
        return part.text === '' ? undefined : JSON.stringify({ text: part.text })
      case 'thinking':
        return this.#writeThought(part.text, part.proof)
      case 'tool-call':
        return this.#writeCall(part)
      case 'search':
        return undefined
      case 'opaque':
        if (part.protocol === 'gemini') return JSON.stringify(part.value)
        return JSON.stringify({ text: '', thought: true, thoughtSignature: writeOpaque(part) })
    }
  }

  /** Renders a signature after its thought; undefined if it belongs to the next call. */
  writeProof(proof: Proof): string | undefined {
    const thoughtSignature = writeSignature(proof)
    if (proof.signs === 'call' && proof.protocol === 'gemini') {
      this.#callSignature = thoughtSignature
      return undefined
    }
    const isOfText = proof.signs === 'text' && proof.protocol === 'gemini'
    return JSON.stringify({ text: '', ...(!isOfText && { thought: true }), thoughtSignature })
  }

  #writeThought(text: string, proof: Proof | undefined): string | undefined {
    const signature = proof && this.writeProof(proof)
    if (text === '') return signature
    const isOwn = proof !== undefined && signature !== undefined
    return JSON.stringify({ text, thought: true, ...(isOwn && { thoughtSignature: writeSignature(proof) }) })
  }

  /** Renders a call. If its input is not an object it was cut off, and the call has no arguments. */
  #writeCall({ id, name, input }: Extract<ReplyPart, { kind: 'tool-call' }>): string | undefined {
    const signature = this.#callSignature
    this.#callSignature = undefined
    const args = inputObject(input) ?? '{}'
    const call = objectOf([...membersOf({ id, name }), ['args', inOneLine(args)]])
    return objectOf([['functionCall', call], ...membersOf({ thoughtSignature: signature })])
  }
}

/** Renders JSON in one line, as an event requires. In JSON, line ends can only stand between values. */
function inOneLine(json: string): string {
  return json.replaceAll(/[\r\n]/g, ' ')
}
