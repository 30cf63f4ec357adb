import type { ReplyPart } from '../reply.ts'

/**
 * A block of an answer as a part, of whole answers and of streams alike: there a block is what it began with,
 * or what its deltas made of it. `input` is the text of a call's input. Whatever other wires cannot say is
 * opaque; nothing is refused.
 */
export function readBlock(block: Readonly<Record<string, unknown>>, input: string): ReplyPart {
  switch (block['type']) {
    case 'text':
      return { kind: 'text', text: textOf(block['text']) }
    case 'thinking': {
      const signature = textOf(block['signature'])
      return {
        kind: 'thinking',
        text: textOf(block['thinking']),
        ...(signature !== '' && { proof: { protocol: 'messages', value: signature } }),
      }
    }
    case 'tool_use':
      return { kind: 'tool-call', id: textOf(block['id']), name: textOf(block['name']), input }
    default:
      return { kind: 'opaque', protocol: 'messages', value: block }
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
