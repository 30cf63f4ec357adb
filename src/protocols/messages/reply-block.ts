import type { ReplyPart } from '../reply.ts'

/**
 * Decodes a block of a reply, or of a stream once its deltas are applied. `input` is the text of a call's
 * input. Blocks that other dialects cannot express are opaque; none is refused.
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
