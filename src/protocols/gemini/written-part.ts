import { membersOf, objectOf } from '../json/json-text.ts'
import type { Proof } from '../conversation.ts'
import type { ReplyPart } from '../reply.ts'
import { inputObject } from '../tool-input.ts'
import { writeOpaque, writeSignature } from './signature.ts'

/** Part that says nothing: clients discard an answer, or its last chunk, without any part. */
export const EMPTY_PART = '{"text":""}'

/** Writes the parts of an answer; the signature of a call waits for it. */
export class PartWriter {
  #callSignature: string | undefined

  /** Writes a whole part as JSON text; undefined if it says nothing. */
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

  /** Writes a signature behind its thought; undefined if it is for the next call. */
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

  /** Writes a call; one whose input is no object was cut off, and has no arguments. */
  #writeCall({ id, name, input }: Extract<ReplyPart, { kind: 'tool-call' }>): string | undefined {
    const signature = this.#callSignature
    this.#callSignature = undefined
    const args = inputObject(input) ?? '{}'
    const call = objectOf([...membersOf({ id, name }), ['args', inOneLine(args)]])
    return objectOf([['functionCall', call], ...membersOf({ thoughtSignature: signature })])
  }
}

/** Writes JSON in one line, which a stream's event must be: line ends can only stand between its values. */
function inOneLine(json: string): string {
  return json.replaceAll(/[\r\n]/g, ' ')
}
