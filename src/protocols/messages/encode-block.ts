import { objectText } from '../exact-json.ts'
import type { Minted } from '../codec.ts'
import type { ReplyPart } from '../reply.ts'

/** What an answer's input is called where it is no JSON object, though this wire wants one. */
const UNREADABLE = 'unreadable_input'

/**
 * A part of an answer as the JSON text of its block; undefined where this wire cannot say it, and for text that is empty.
 * A call's input keeps the text that the model wrote; one that is no JSON object becomes the one member of such.
 */
export function encodeBlock(part: ReplyPart): string | undefined {
  switch (part.kind) {
    case 'text':
      return part.text === '' ? undefined : JSON.stringify({ type: 'text', text: part.text })
    case 'thinking':
      return JSON.stringify({
        type: 'thinking',
        thinking: part.text,
        signature: part.proof?.protocol === 'messages' ? part.proof.value : '',
      })
    case 'tool-call': {
      const head = JSON.stringify({ type: 'tool_use', id: part.id, name: part.name }).slice(0, -1)
      return `${head},"input":${objectText(part.input) ?? JSON.stringify({ [UNREADABLE]: part.input })}}`
    }
    case 'opaque':
      return part.protocol === 'messages' ? JSON.stringify(part.value) : undefined
  }
}

/** The upstream's id where it has this wire's form, else one that was minted. */
export function messageId(id: string, minted: Minted): string {
  if (id.startsWith('msg_')) return id
  return minted.id.startsWith('msg_') ? minted.id : `msg_${minted.id}`
}
